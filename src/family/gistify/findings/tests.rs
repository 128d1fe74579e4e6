use super::*;

fn found(text: &str) -> Vec<(FindingKind, u32, String)> {
    let modules: Modules = ["tiny", "tiny.core", "space.one"].into_iter().collect();
    let hidden = BTreeSet::from(["src/tiny/core.py".to_owned()]);
    let Ok(test) = "TestA::test_a".parse();
    let scenery = Scenery { modules: &modules, test: &test, root: "/testbed", hidden: &hidden };
    let all = findings(text, scenery).unwrap();
    all.into_iter().map(|finding| (finding.kind, finding.line, finding.name)).collect()
}

fn one(kind: FindingKind, name: &str, texts: &[&str]) {
    for text in texts {
        let found = found(text);
        assert!(found.iter().any(|it| (it.0, &*it.2) == (kind, name)), "{text}: {found:?}");
    }
}

fn nothing(texts: &[&str]) {
    for text in texts {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn imports_of_the_repository_are_found_wherever_they_stand() {
    let kind = FindingKind::ImportStatement;
    one(
        kind,
        "tiny",
        &["import tiny", "def f():\n  import os, tiny as t", "try:\n import tiny\nexcept E: pass"],
    );
    one(
        kind,
        "tiny.unknown.x",
        &["from tiny.unknown import x", "class A:\n  from tiny.unknown import x as y"],
    );
    one(kind, "tiny.*", &["from tiny import *"]);
    one(kind, ".tiny.Box", &["from .tiny import Box"]);
    one(kind, "space.one", &["from space import one", "import space.one"]);
    one(kind, "tiny", &["if not TYPE_CHECKING:\n  import tiny", "if TYPE_CHECKING or f():\n  import tiny"]);
    one(kind, "tiny", &["if TYPE_CHECKING:\n  pass\nelse:\n  import tiny"]);
    nothing(&["import tinyness, os", "from space import two", "if typing.TYPE_CHECKING:\n  import tiny"]);
}

#[test]
fn copies_that_dependencies_carry_are_found() {
    one(
        FindingKind::VendoredCopy,
        "pip._vendor.tiny",
        &["import pip._vendor.tiny", "from pip._vendor import tiny"],
    );
    nothing(&["import pip._vendor.other"]);
}

#[test]
fn other_ways_to_the_repository_are_flagged() {
    one(
        FindingKind::DynamicImport,
        "tiny.core",
        &[
            "__import__('tiny.core')",
            "from importlib import import_module as f\nf('ti' + 'ny.core')",
            "import pytest\npytest.importorskip(modname='tiny.core')",
        ],
    );
    one(FindingKind::PathTrick, "sys.path.insert", &["import sys\nsys.path.insert(0, 'x')"]);
    one(
        FindingKind::PathTrick,
        "sys.path",
        &["import sys\nsys.path[:0] = ['x']", "from sys import path\nimport sys\nsys.path += []"],
    );
    one(FindingKind::PathTrick, "PYTHONPATH", &["import os\nos.environ['PYTHONPATH'] = 'x'"]);
    one(FindingKind::ReadsTree, "/testbed/src", &["open('/testbed/src')"]);
    one(FindingKind::ReadsTree, "src/tiny/core.py", &["open('src/tiny/core.py')"]);
    one(FindingKind::Spawns, "subprocess.run", &["from subprocess import run\ndef f():\n  run(x)"]);
    nothing(&[
        "print(sys.path)",
        "open('/testbeds')",
        "open('data.json')",
        "importlib.import_module('json')",
    ]);
}

#[test]
fn faked_modules_and_patched_tools_are_found() {
    one(
        FindingKind::RegistersRepositoryModule,
        "tiny.core",
        &[
            "import sys\nsys.modules['tiny.core'] = x",
            "import sys as s\ns.modules.setdefault('tiny.core', x)",
            "from sys import modules\nmodules.update({'a': 1, 'tiny.core': x})",
            "from unittest import mock\nwith mock.patch.dict('sys.modules', {'tiny.core': x}): pass",
            "import sys\ndef f(monkeypatch):\n  monkeypatch.setitem(sys.modules, 'tiny.core', x)",
        ],
    );
    one(
        FindingKind::PatchesTestTools,
        "_pytest.python.Function.runtest",
        &[
            "import _pytest.python\n_pytest.python.Function.runtest = x",
            "from _pytest.python import Function\nsetattr(Function, 'runtest', x)",
        ],
    );
    one(
        FindingKind::PatchesTestTools,
        "pytest.raises",
        &[
            "import pytest\nwith f() as pytest.raises: pass",
            "import pytest\n[0 for pytest.raises in x]",
            "import pytest\nfor a, [pytest.raises, *b] in x: pass",
            "import pytest\npytest.raises: object = x",
            "import pytest\ndel pytest.raises",
        ],
    );
    nothing(&["import sys\nsys.modules['other'] = x", "import sys\nx = sys.modules['tiny']"]);
    nothing(&["import pytest\npytest.raises: object", "import pytest\nx = pytest.raises"]);
}

#[test]
fn leftovers_are_flagged() {
    one(
        FindingKind::MainGuard,
        "__main__",
        &["if '__main__' == __name__: pass", "if __name__ == '__main__': pass"],
    );
    assert_eq!(found("class TestA:\n  def test_a(self): pass\n  def helper(self): pass\n"), []);
    one(FindingKind::LeftoverTest, "TestA::test_b", &["class TestA:\n  def test_b(self): pass\n"]);
    one(FindingKind::LeftoverTest, "test_a", &["def test_a(): pass\n"]);
    one(
        FindingKind::LeftoverTest,
        "Case::test_a",
        &["import unittest as u\nclass Case(u.TestCase):\n  def test_a(self): pass\n"],
    );
    nothing(&[
        "import pytest\n@pytest.fixture\ndef test_apps(): pass\n",
        "from pytest import fixture\n@fixture(scope='module')\ndef test_apps(): pass\n",
        "class Flask:\n  def test_client(self): pass\n",
        "class Box:\n  class TestX:\n    def test_y(self): pass\n",
    ]);
}

#[test]
fn findings_are_bounded() {
    let found = found(&"import tiny\n".repeat(5_000));
    assert_eq!(found.len(), super::walk::KEPT);
}
