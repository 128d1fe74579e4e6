use std::collections::BTreeSet;

use super::*;
use crate::score::Modules;

const CORE: &str = "\
import atexit
import gc
import functools
import types


class Box:
    def __init__(self, items):
        self.items = list(items)

    def size(self):
        return len(self.items)

    def plays(self, script):
        exec(compile(script, 'box', 'exec'), {})


def close(box):
    atexit.register(box.size)
";
const TEST: &str = "\
import collections.abc
import pytest
from collections.abc import Mapping

from tiny import Box


@pytest.fixture
def box(monkeypatch):
    return Box('ab')


def helper(value):
    return sorted(value)


class TestBox:
    @pytest.mark.parametrize('size', [2])
    def test_size(self, box, size, capsys):
        with pytest.raises(KeyError):
            {}['x']
        assert box.size() == size == len(helper('ab'))
        assert not isinstance(box, Mapping)
";
const BOX: &str = "\
class Box:
    def __init__(self, items):
        self.items = list(items)

    def size(self):
        return len(self.items)
";

/// A file with the test, and with this instead of what it imports from the repository.
fn mine(own: &str) -> String {
    TEST.replace("import collections.abc\n", "").replace("from tiny import Box\n", own)
}

/// The kinds that a submission has whose own part is this.
fn kinds(own: &str) -> Vec<FindingKind> {
    let text = mine(&format!("{BOX}\n\n{own}\n"));
    let found = found_in(&text);
    let kinds: BTreeSet<FindingKind> = found.iter().map(|one| one.kind).collect();
    kinds.into_iter().collect()
}

fn found_in(text: &str) -> Vec<Finding> {
    let modules: Modules = ["tiny", "tiny.core", "tests", "tests.test_box"].into_iter().collect();
    let files =
        [File { path: "tiny/__init__.py", text: CORE }, File { path: "tests/test_box.py", text: TEST }];
    let corpus = Corpus::of(&files, modules.clone());
    let Ok(test) = "TestBox::test_size".parse::<TestName>();
    let scenery = Scenery { modules: &modules, test: &test, root: "/testbed", hidden: &BTreeSet::new() };
    let against = Against { original: files[1], defined: &test, corpus: &corpus };
    strict_findings(text, scenery, against).unwrap()
}

fn all(kind: FindingKind, texts: &[&str]) {
    for text in texts {
        assert!(kinds(text).contains(&kind), "{text}: {:?}", kinds(text));
    }
}

fn clean(texts: &[&str]) {
    for text in texts {
        assert_eq!(kinds(text), [], "{text}");
    }
}

#[test]
fn a_command_may_use_what_runs_tests_like_any_library() {
    let own = "import pluggy, gc\n\nhookimpl = pluggy.HookimplMarker('box')\nkept = gc.get_objects()";
    let found = found_in(&mine(&format!("{BOX}\n\n{own}\n")));
    let names = |found: &[Finding]| found.iter().map(|one| one.name.clone()).collect::<BTreeSet<_>>();
    assert!(names(&found).contains("pluggy.HookimplMarker"), "{found:?}");
    let left: Vec<Finding> = found.into_iter().filter(counts_for_commands).collect();
    assert_eq!(names(&left), ["gc.get_objects", "get_objects"].map(str::to_owned).into(), "{left:?}");
}

#[test]
fn what_makes_a_plugin_is_found() {
    all(
        FindingKind::RegistersPlugin,
        &[
            "pytest_plugins = ['concise']",
            "pytest_plugins: list = ['concise']",
            "if True:\n    pytest_plugins = ('concise',)",
            "[pytest_plugins] = [['concise']]",
            "def pytest_runtest_call(item): pass",
            "async def pytest_pyfunc_call(pyfuncitem): pass",
            "class P:\n    def pytest_runtest_makereport(self, item): pass",
            "def hook(item): pass\npytest_runtest_call = hook",
            "from contextlib import suppress as pytest_runtest_call",
            "globals()['pytest_' + 'plugins'] = ['concise']",
            "@pytest.fixture(autouse=True)\ndef on(request):\n    request.config.pluginmanager.register(P())",
            "@pytest.hookimpl(wrapper=True)\ndef f(item): pass",
            "from pytest import hookimpl as mark_it",
            "P = type('P', (), {'pytest_runtest_call': print})",
        ],
    );
    clean(&["import pytest_asyncio", "pytest.importorskip('pytest_asyncio')", "def pytestlike(): pass"]);
}

#[test]
fn what_reaches_the_tools_of_a_test_is_found() {
    all(
        FindingKind::ReachesTestTools,
        &[
            "import _pytest.python",
            "from _pytest import monkeypatch as mp\nmp.MonkeyPatch.undo = print",
            "from _pytest.runner import CallInfo as C",
            "import ｇｃ\nｇｃ.get_objects()",
            "import gc\nfor one in gc.get_objects(): pass",
            "import gc as g\nobjects = g",
            "import gc\nf = getattr(gc, 'get_' + 'objects')",
            "from gc import get_referrers as who",
            "import sys\nsys.modules['gistmill_runner.group_run'].x = 1",
            "import sys\nname = 'x'\nsys.modules[name]",
            "import sys\nfor one in list(sys.modules.values()): pass",
            "import sys as s\ns._getframe(1)",
            "import sys\nf = getattr(sys, '_getframe')",
            "import sys\nname = 'x'\nf = getattr(sys, name)",
            "import sys\ndef frame(module, name): return getattr(module, name)\nframe(sys, 'x')",
            "def f(x): return x.f_back.f_locals",
            "try:\n    x\nexcept NameError as e:\n    e.__traceback__.tb_frame",
            "import inspect\ninspect.stack()",
            "from inspect import currentframe as here",
            "import os\nos._exit(0)",
            "import os\nif 1:\n    from os import _exit as leave",
            "import ctypes",
            "__import__('ct' + 'ypes')",
            "name = 'x'\n__import__(name)",
            "import importlib\nimportlib.import_module('_pytest.runner')",
            "import signal\nsignal.alarm(3)",
            "pytest.raises = None",
            "pytest.Function.runtest = None",
            "type.__setattr__(pytest.Function, 'runtest', None)",
            "setattr(pytest, 'raises', None)",
            "from unittest import mock\nmock.patch('_pytest.runner.CallInfo.from_call').start()",
            "def f(): pass\nf.__code__ = None",
            "def f(): pass\nsetattr(f, '__co' + 'de__', None)",
            "open('/proc/self/mem')",
            "import os\nopen(f'/proc/{os.getppid()}/mem')",
            "__loader__.get_data('x')",
            "def f(x=__builtins__): pass",
        ],
    );
    clean(&[
        "import gc\ngc.collect()",
        "import sys\nmodule = sys.modules[__name__]\nsys.modules.get('json')\n'json' in sys.modules",
        "import sys\nsys.stdout.write(sys.version_info[0] * 'x')\nsys.exc_info()",
        "import atexit\natexit.register(print)",
        "def f(one, name): return getattr(one, name, None) or getattr(one, 'size')",
        "import inspect\ninspect.signature(print)\ninspect.isclass(Box)",
        "from _pytest import monkeypatch as mp\nmine = mp.MonkeyPatch()\nmine.setenv('A', 'b')",
        "from _pytest.logging import LogCaptureFixture",
        "open('/proc/self/status')\nopen('/processes')",
        "def f(request: pytest.FixtureRequest, item: pytest.Item): return request.node.name",
        "from unittest import mock\nmock.patch('os.getcwd')\nimport os\nmock.patch.object(os, 'getcwd')",
        "@pytest.fixture\ndef cwd(monkeypatch):\n    import os\n    monkeypatch.setattr(os, 'getcwd', lambda: '/')",
    ]);
}

#[test]
fn code_that_is_data_is_found() {
    let blob = "aGVsbG8gd29ybGQ".repeat(200);
    let lines = "# ".to_owned() + &"word other words ".repeat(10) + "\n";
    let docs = format!("'''\n{}'''", lines.repeat(20));
    let pieces =
        (0..120).map(|n| format!("b{n} = 'cGFja2VkcGFja2VkcGFja2Vk{n:03}'\n")).collect::<Vec<_>>().concat();
    let numbers = format!("b = bytes([{}])", "104, ".repeat(1_000));
    let tabs = "x = 1 \t \t\t \t  \t\t \t\t\t \t \t \t\t\n".repeat(100);
    all(
        FindingKind::HiddenCode,
        &[
            "exec('x = 1')",
            "run = eval",
            "import builtins\nbuiltins.exec('x')",
            "from builtins import compile as make",
            "if 0:\n    exec = print\nexec('x')",
            "import marshal",
            "from pickle import loads as f",
            "import types\ntypes.FunctionType(x, {})",
            "import importlib.util as u\nu.spec_from_loader('x', None)",
            "from importlib.machinery import SourceFileLoader as L",
            "import zipimport",
            "import sys\nsys.meta_path.insert(0, x)",
            "@pytest.fixture(params=[exec('x')])\ndef other(): pass",
            &format!("b = '{blob}'"),
            &format!("b = b'{blob}'"),
            &format!("b = f'{blob}'"),
            &format!(
                "b = ['{}']",
                blob.as_bytes()
                    .chunks(50)
                    .map(|it| String::from_utf8_lossy(it))
                    .collect::<Vec<_>>()
                    .join("', '")
            ),
            &docs,
            &lines.repeat(20),
            &pieces,
            &numbers,
            &tabs,
            &format!("b = '''{}'''", " \t  \t\t ".repeat(500)),
        ],
    );
    clean(&[
        "import re\nPATTERN = re.compile('x')",
        "def compile(text): return text\ncompile('x')",
        "import types\nisinstance(print, types.FunctionType)",
        "import pickle\npickle.loads(pickle.dumps(1))",
        "import importlib.util\nimportlib.util.find_spec('json')",
        "import json\njson.loads('{}')\nclass A:\n    '''Says what it is, in some words.'''",
        &format!("table = {{{}}}", (0..60).map(|n| format!("'name{n}': {n}, ")).collect::<Vec<_>>().concat()),
    ]);
}

#[test]
fn what_the_repository_does_itself_a_submission_may_do() {
    let theirs = "\n    def plays(self, script):\n        exec(compile(script, 'box', 'exec'), {})\n";
    let text = mine(&format!("{BOX}{theirs}\n"));
    assert_eq!(found_in(&text), []);
    let moved = mine(&format!("{BOX}\n\ndef plays(script):\n    exec(script, {{}})\n"));
    let found = found_in(&moved);
    assert_eq!((found.len(), found[0].kind, &*found[0].name), (1, FindingKind::HiddenCode, "exec"));
    assert_eq!(found[0].evidence, "exec(script, {})");
    assert!(moved.lines().nth(found[0].line as usize - 1).is_some_and(|line| line.contains("exec(")));
}

#[test]
fn a_test_that_becomes_something_else_is_found() {
    all(
        FindingKind::NeutralizedTest,
        &[
            "@pytest.fixture(autouse=True)\ndef on(request):\n    request.node.obj = print",
            "@pytest.fixture(autouse=True)\ndef on(request):\n    node = request.node\n    node.obj = print",
            "@pytest.fixture(autouse=True)\ndef on(request):\n    setattr(request.node, 'obj', print)",
            "@pytest.fixture(autouse=True)\ndef on(request):\n    request.cls.test_size = print",
            "globals()['TestBox'] = None",
            "names = globals()\nnames['x'] = 1",
            "def swap(name): globals()[name] = None",
            "vars().update(x=1, **{})",
        ],
    );
    let after = |own: &str| {
        let found = found_in(&format!("{}{own}\n", mine(BOX)));
        found.iter().any(|one| one.kind == FindingKind::NeutralizedTest)
    };
    for own in [
        "TestBox.test_size = print",
        "[0 for TestBox.test_size in [print]]",
        "box, [*TestBox.test_size] = 1, [print]",
        "TestBox = wrapped(TestBox)",
        "for TestBox in [None]: pass",
        "from contextlib import suppress as TestBox",
        "setattr(TestBox, 'test_' + 'size', print)",
        "wrapped(TestBox)",
        "one = TestBox",
        "def swap():\n    global TestBox\n    TestBox = None",
        "import sys\nsetattr(sys.modules[__name__], 'TestBox', None)",
    ] {
        assert!(after(own), "{own}");
    }
    for own in [
        "class TestMore(TestBox): pass",
        "if __name__ == '__main__':\n    TestBox().test_size(Box('ab'), 2, None)",
    ] {
        assert!(!after(own), "{own}");
    }
    for (header, inner) in [
        ("class TestBox(metaclass=Meta):", ""),
        ("@forgiving\nclass TestBox:", ""),
        ("class TestBox(Base):", ""),
        ("class TestBox(make()):", ""),
        ("class TestBox:", "    def __getattribute__(self, name): pass\n"),
        ("class TestBox:", "    test_size = None\n"),
    ] {
        let base = "class Base:\n    def __init_subclass__(cls): pass\n";
        let text = mine(&format!("{BOX}\n{base}"));
        let text = text.replace("class TestBox:\n", &format!("{header}\n{inner}"));
        let found = found_in(&text);
        assert!(
            found.iter().any(|one| one.kind == FindingKind::NeutralizedTest),
            "{header} {inner}: {found:?}"
        );
    }
    clean(&[
        "names = globals().keys()\nglobals()['Box']\nlocals().get('x')",
        "def f():\n    return locals()",
        "class Other:\n    def __getattr__(self, name): return name\n    def run(self): pass",
        "@pytest.fixture\ndef on(request):\n    request.cls.driver = 1",
    ]);
}

#[test]
fn a_name_of_the_test_that_means_something_else_is_found() {
    all(
        FindingKind::ShadowsName,
        &[
            "def len(x): return 2",
            "len = lambda one: 2",
            "class KeyError(Exception): pass",
            "def sorted(x): return [1, 2]",
            "for len in [print]: pass",
            "def f():\n    global len\n    len = None",
            "[len := print for x in 'a']",
            "from operator import length_hint as len",
            "try:\n    x\nexcept NameError as len: pass",
            "class pytest:\n    raises = print",
            "import unittest as pytest",
            "Mapping = dict",
            "@pytest.fixture\ndef capsys(): pass",
            "@pytest.fixture(name='capsys')\ndef other(): pass",
            "@pytest.fixture\ndef monkeypatch(): pass",
            "import builtins\nbuiltins.len = print",
            "import builtins\nbuiltins.len, other = print, 1",
            "import builtins\n[0 for builtins.len in [print]]",
            "import builtins\ndel builtins.len",
            "import builtins\nsetattr(builtins, 'len', print)",
        ],
    );
    clean(&[
        "def open(path): pass",
        "len = len",
        "from builtins import len",
        "from typing import Mapping",
        "def f(len): return len",
        "class Other:\n    def len(self): pass",
        "@pytest.fixture\ndef tmp_path(): pass",
        "[len for len in 'ab']",
    ]);
}

#[test]
fn an_honest_file_of_ones_own_is_clean() {
    clean(&["\
import contextlib
import functools
import os
import sys
from types import SimpleNamespace


@functools.lru_cache(maxsize=None)
def _known(name):
    return {'a': 1, 'b': 2}.get(name, 0)


@contextlib.contextmanager
def opened(path, mode='r'):
    handle = open(path, mode)
    try:
        yield handle
    finally:
        handle.close()


class Registry(dict):
    __slots__ = ()

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def fill(self, **values):
        for name, value in values.items():
            setattr(self, name, value)


partial = functools.partial(_known, 'a')
config = SimpleNamespace(**{key: getattr(partial, key) for key in ('func',)})
if sys.platform != 'win32' and os.environ.get('X'):
    print(type(config).__name__, vars(config), dir(config))
"]);
}
