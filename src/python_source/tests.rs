//! Small sources, and what is found in them.

use super::*;
use crate::record::entry::GroupKey;
use crate::record::verdict::Dimension;

fn group(classes: &[&str], function: &str) -> Group {
    let classes = classes.iter().map(|class| (*class).to_owned()).collect();
    Group::of(GroupKey { file: "tests/test_here.py".to_owned(), classes, function: function.to_owned() })
}

fn file(text: &str) -> SourceFile {
    SourceFile::parse("tests/test_here.py", text).expect("is Python")
}

fn test_source(text: &str, group: &Group) -> Option<String> {
    let file = SourceFile::parse(&group.file, text)?;
    file.code(group).map(|code| code.source().to_owned())
}

fn calls(text: &str) -> Vec<String> {
    let file = file(text);
    file.code(&group(&[], "test")).expect("is there").calls().map(str::to_owned).collect()
}

fn uses(text: &str) -> Vec<String> {
    let file = file(text);
    file.code(&group(&[], "test")).expect("is there").uses().map(str::to_owned).collect()
}

fn places(text: &str, group: &Group) -> Vec<String> {
    file(text).code(group).expect("is there").places().iter().map(ToString::to_string).collect()
}

fn told(dimension: Dimension, text: &str) -> Vec<String> {
    let group = group(&[], "test");
    file(text)
        .clues(dimension, &group, "tests.test_here", "tests/test_here.py")
        .iter()
        .map(ToString::to_string)
        .collect()
}

const METHODS: &str = "\
import pytest


class TestOuter:
    class TestInner:
        @pytest.mark.parametrize(
            'x',
            [1, 2],
        )
        async def test_in(self, x):
            text = '''
not indented
'''

        def test_next(self): pass


def test_in():
    pass
";

#[test]
fn the_source_of_a_test_has_its_decorators_and_its_whole_body() {
    let source = test_source(METHODS, &group(&["TestOuter", "TestInner"], "test_in")).expect("is there");
    assert!(source.starts_with("        @pytest.mark.parametrize(\n"), "{source}");
    assert!(source.ends_with("not indented\n'''"), "{source}");
    let file = file(METHODS);
    assert_eq!(
        file.code(&group(&["TestOuter", "TestInner"], "test_in")).map(|code| code.lines()),
        Some((6, 13))
    );
    assert_eq!(test_source(METHODS, &group(&[], "test_in")).as_deref(), Some("def test_in():\n    pass"));
}

#[test]
fn what_is_not_there_or_no_python_is_not_found() {
    assert_eq!(test_source(METHODS, &group(&["TestOuter"], "test_in")), None);
    assert_eq!(test_source(METHODS, &group(&["TestElsewhere"], "test_in")), None);
    assert_eq!(test_source("def test(:\n", &group(&[], "test")), None);
    assert_eq!(test_source("class Test(Base):\n    pass\n", &group(&["Test"], "test_inherited")), None);
}

#[test]
fn a_method_of_a_base_in_the_same_file_is_found() {
    let text = "class Base:\n    def test(self):\n        pass\n\nclass TestA(Base):\n    pass\n";
    assert_eq!(
        test_source(text, &group(&["TestA"], "test")).as_deref(),
        Some("    def test(self):\n        pass")
    );
}

#[test]
fn of_two_definitions_the_last_one_counts() {
    let text = "if True:\n    def test():\n        one()\nelse:\n    def test():\n        two()\n";
    assert_eq!(calls(text), ["two"]);
    let bom = "\u{feff}def test():\n    one()\n";
    assert_eq!(test_source(bom, &group(&[], "test")).as_deref(), Some("def test():\n    one()"));
}

#[test]
fn calls_are_resolved_through_imports_assignments_and_chains() {
    let text = "\
import numpy as np
import os.path
from socket import create_connection as cc, socket
from . import near
from .far import away
from pathlib import Path

def test(monkeypatch):
    import json
    cc(('a', 1))
    np.random.rand()
    os.path.join('a')
    near.go()
    away()
    sock = socket()
    sock.connect(1)
    Path('x').resolve()
    json.dumps(1)
    monkeypatch.setenv('A', 'b')
    local = [1]
    local.append(2)
    f(1)[0].close()
    with open('x') as stream:
        stream.read()
    ', '.join([])
    class Inner: pass
    Inner()
";
    assert_eq!(
        calls(text),
        [
            ".Inner",
            ".close",
            ".far.away",
            ".near.go",
            "f",
            "json.dumps",
            "list.append",
            "monkeypatch.setenv",
            "numpy.random.rand",
            "open",
            "open.read",
            "os.path.join",
            "pathlib.Path",
            "pathlib.Path.resolve",
            "socket.create_connection",
            "socket.socket",
            "socket.socket.connect",
            "str.join",
        ]
    );
}

#[test]
fn a_name_of_the_file_is_not_that_of_a_module_or_a_builtin() {
    let text = "\
def open(path):
    return path

def test():
    open('x')
    requests = []
    requests.get('x')
    for requests in []: requests.post()
";
    assert_eq!(calls(text), [".open", ".requests.get", ".requests.post"]);
}

#[test]
fn reads_are_what_is_not_called() {
    let text = "\
from sys import argv
import os

def test():
    here = __file__
    argv[1]
    os.environ.get('X')
    one.two.three
    later = os.getcwd
    later()
    mine = 1
    mine.real
";
    assert_eq!(
        uses(text),
        [
            ".mine.real",
            "__file__",
            "one",
            "one.two",
            "one.two.three",
            "os",
            "os.environ",
            "os.getcwd",
            "sys.argv"
        ]
    );
}

const CLOSURE: &str = "\
import pytest

SIZE = compute()
UNUSED = other()
pytestmark = pytest.mark.usefixtures('marked')

@pytest.fixture
def marked(): in_marked()

@pytest.fixture(name='given')
def make_given(deeper): in_given()

@pytest.fixture()
def deeper(): helper()

@pytest.fixture
def unused(): in_unused()

@pytest.fixture(autouse=True)
def always(): in_always()

def helper(): return Thing(SIZE)

def stranger(): in_stranger()

def setup_module(): in_setup_module()

def setup_function(): in_setup_function()

class Thing:
    size = in_body()
    def method(self): in_method()

def test(given): pass

class Base:
    def setUp(self): in_base_set_up()
    def shared(self): in_shared()

class TestIt(Base):
    @pytest.fixture(autouse=True)
    def mine(self): in_mine()
    def setup_method(self): in_setup_method()
    def own(self): in_own()
    def test(self): self.own(); self.shared()
    def test_other(self): in_other()
";

#[test]
fn the_closure_of_a_function_has_what_it_reaches_and_nothing_else() {
    assert_eq!(
        places(CLOSURE, &group(&[], "test")),
        [
            "in the test",
            "in fixture `always`",
            "in fixture `deeper`",
            "in fixture `given`",
            "in fixture `marked`",
            "in set-up `setup_function`",
            "in set-up `setup_module`",
            "in helper `helper`",
            "in helper `method`",
            "in class `Thing`",
            "at module level",
        ]
    );
    let calls = calls(CLOSURE);
    for (name, is_called) in [("in_method", true), ("compute", true), ("in_unused", false), ("other", false)]
    {
        assert_eq!(calls.iter().any(|call| call == name), is_called, "{name}: {calls:?}");
    }
}

#[test]
fn the_closure_of_a_method_has_the_set_up_of_its_class_and_the_members_that_it_names() {
    let file = file(CLOSURE);
    let code = file.code(&group(&["TestIt"], "test")).expect("is there");
    let calls: Vec<&str> = code.calls().filter(|call| call.starts_with("in_")).collect();
    let expected =
        ["in_mine", "in_setup_method", "in_base_set_up", "in_always", "in_setup_module", "in_marked"];
    assert!(expected.iter().chain(&["in_own", "in_shared"]).all(|call| calls.contains(call)), "{calls:?}");
    assert_eq!(calls.len(), 8, "{calls:?}");
}

#[test]
fn fixtures_that_only_pytest_knows_of_are_followed() {
    let mut group = group(&[], "test");
    group.fixtures = vec!["unused".to_owned()];
    let file = file(CLOSURE);
    assert!(file.code(&group).expect("is there").calls().any(|call| call == "in_unused"));
    let asking = "import pytest\n@pytest.fixture\ndef late(): in_late()\ndef test(request): request.getfixturevalue('late')\n";
    assert!(calls(asking).contains(&"in_late".to_owned()));
}

#[test]
fn circles_of_helpers_and_classes_end() {
    let text = "class A(B): pass\nclass B(A):\n    def m(self): a()\ndef a(): b()\ndef b(): a(); A()\ndef test(): a()\n";
    let mut found = calls(text);
    found.sort();
    found.dedup();
    assert_eq!(found, [".A", ".a", ".b"]);
}

#[test]
fn nodes_are_those_of_the_closure() {
    let text = "\
async def helper():
    async with x as y: pass

def stranger():
    global z

def test():
    helper()
    f'{1}'
    try: pass
    except* ValueError: pass
";
    let file = file(text);
    let code = file.code(&group(&[], "test")).expect("is there");
    let found: Vec<&str> = KINDS.into_iter().filter(|kind| code.has_node(kind)).collect();
    for kind in
        ["AsyncFunctionDef", "AsyncWith", "FunctionDef", "TryStar", "FormattedValue", "JoinedStr", "Call"]
    {
        assert!(found.contains(&kind), "{kind}: {found:?}");
    }
    for kind in ["Global", "With", "Try", "Lambda", "ClassDef", "Interpolation"] {
        assert!(!found.contains(&kind), "{kind}: {found:?}");
    }
    assert!(!code.has_node("Nonsense"));
}

#[test]
fn clues_of_location_say_what_is_done_where() {
    let text = "\
import os, pickle, inspect, sys
from pathlib import Path
from unittest import mock
import pytest

DATA = Path(__file__).parent / 'data'
os.environ['HERE'] = os.getcwd()

class Own: pass

@pytest.fixture
def rows():
    return open('data/rows.txt').read()

def helper():
    return inspect.getsource(Own)

def test(rows, request, testdir):
    helper()
    with mock.patch('tests.test_here.helper'): pass
    pickle.dumps(Own())
    assert request.node.name
    sys.modules[__name__]
    os.environ['PYTEST_CURRENT_TEST']
    list(DATA.iterdir())
    'test_here.py'

def test_other():
    os.listdir('elsewhere')
";
    assert_eq!(
        told(Dimension::TestFileLocation, text),
        [
            "line 18, in the test: gets fixture `testdir`, which finds or names files by the test's own name and place",
            "line 20, in the test: names its own module: \"tests.test_here.helper\"",
            "line 21, in the test: calls `pickle.dumps`: a class of this file is pickled by the name of its module",
            "line 22, in the test: reads `request.node`: the test's own file or name",
            "line 23, in the test: reads `__name__`: its own module",
            "line 24, in the test: reads the environment variable `PYTEST_CURRENT_TEST`",
            "line 13, in fixture `rows`: calls `open` with the relative path \"data/rows.txt\"",
            "line 6, at module level: reads `__file__`: its own file",
            "line 16, in helper `helper`: calls `inspect.getsource`: which file a function or frame comes from",
            "line 7, at module level: calls `os.getcwd`: the directory that the test runs in",
        ]
    );
}

#[test]
fn absolute_paths_own_directories_and_other_names_are_no_clues() {
    let text = "\
import pytest
if __name__ == '__main__':
    pytest.main()

def test(tmp_path, monkeypatch):
    '''Of test_here.py.'''
    open('/etc/hosts', encoding='utf-8')
    open(tmp_path / 'x', encoding='utf-8')
    'other_test_here_too'
    sorted({1, 2})
    sum(x for x in {1, 2})
    {x for x in {1, 2}}
";
    for dimension in Dimension::ALL {
        assert_eq!(told(dimension, text), [""; 0], "{}", dimension.as_str());
    }
    let moved = "def test(tmp_path, monkeypatch):\n    monkeypatch.chdir(tmp_path)\n    open('x', 'wb')\n";
    assert_eq!(told(Dimension::WorkingDirectory, moved), [""; 0]);
}

#[test]
fn every_dimension_has_its_clues() {
    let cases = [
        (Dimension::HashSeed, "for x in set('ab'): pass", "goes through a set in its order"),
        (Dimension::HashSeed, "s = {'a'} | t; print(s)", "goes through a set in its order"),
        (Dimension::HashSeed, "[x for x in {'a'}]", "goes through a set in its order"),
        (Dimension::HashSeed, "hash('a')", "calls `hash`: differs from process to process"),
        (Dimension::TimeZone, "import time; time.localtime()", "calls `time.localtime`: the local time"),
        (
            Dimension::TimeZone,
            "from datetime import datetime as d; d(2020, 1, 1).astimezone()",
            "calls `datetime.datetime.astimezone`: goes by the local time zone",
        ),
        (
            Dimension::Clock,
            "import datetime as d; d.date.today()",
            "calls `datetime.date.today`: the local time",
        ),
        (Dimension::Locale, "x.strftime('%A')", "calls `x.strftime`: goes by the locale"),
        (Dimension::Locale, "open('/x')", "calls `open` without an encoding"),
        (Dimension::Home, "import os; os.environ.get('HOME')", "reads the environment variable `HOME`"),
        (
            Dimension::Home,
            "from pathlib import Path; Path.home()",
            "calls `pathlib.Path.home`: the user, the home directory or the directory for temporary files",
        ),
        (
            Dimension::Terminal,
            "import shutil; shutil.get_terminal_size()",
            "calls `shutil.get_terminal_size`: goes by the size or kind of the terminal",
        ),
        (Dimension::Load, "import time; time.sleep(1)", "calls `time.sleep`: waits"),
        (Dimension::Load, "x.get(timeout=1)", "calls `x.get` with a timeout"),
        (
            Dimension::CheckoutPath,
            "import os; os.path.abspath('x')",
            "calls `os.path.abspath` with the relative path \"x\"",
        ),
        (
            Dimension::WorkingDirectory,
            "import os; os.getcwd()",
            "calls `os.getcwd`: the directory that the test runs in",
        ),
        (Dimension::TestFileLocation, "__spec__.name", "reads `__spec__`: its own module"),
    ];
    for (dimension, body, expected) in cases {
        let found = told(dimension, &format!("def test():\n    {body}\n"));
        assert_eq!(found, [format!("line 2, in the test: {expected}")], "{body}");
    }
}

#[test]
fn deep_trees_do_not_overflow_the_stack() {
    for (piece, last) in [("1 + ", "1"), ("not ", "1")] {
        let deep = |times: usize| format!("def test():\n    return {}{last}\n", piece.repeat(times));
        assert!(file(&deep(5_000)).code(&group(&[], "test")).is_some(), "{piece}");
        // Nor can Python compile it.
        assert!(SourceFile::parse("test_a.py", &deep(1_000_000)).is_none(), "{piece}");
    }
    let chain = format!("def test():\n    return x{}\n", ".y()".repeat(2_000));
    assert!(file(&chain).code(&group(&[], "test")).is_some());
}
