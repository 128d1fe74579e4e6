"""What plugins and settings of real projects do to collecting and running, and what a cold run would show of it."""

import pytest

from driver import outcomes


def words(runner, ready):
    return {item["node_id"].partition("::")[2]: outcomes(runner.ask("run", items=[item["index"]])) for item in ready["items"]}


@pytest.mark.parametrize("name", ["mmap", "resource"])
def test_a_module_named_like_one_of_the_standard_library_is_the_trees(start, name):
    test = "import %s as module\n\ndef test_a(): assert module.tidy(' a ') == 'a'\n" % name
    runner = start({"tests/%s.py" % name: "def tidy(name): return name.strip()\n", "tests/test_a.py": test})
    assert words(runner, runner.open("tests/test_a.py")) == {"test_a": ["passed"]}
    runner = start({"tests/test_a.py": "import %s, mmap, ctypes\n\ndef test_a(): mmap.mmap(-1, 9), ctypes.c_int(1)\n" % name})
    assert words(runner, runner.open("tests/test_a.py")) == {"test_a": ["passed"]}


DESCRIBED = """
import pytest

class Block(pytest.Module):
    def collect(self):
        for name in ("adds", "takes"):
            yield pytest.Function.from_parent(self, name=name, callobj=lambda: None)

class Outer(pytest.Module):
    def collect(self):
        for name in ("first", "second"):
            yield Block.from_parent(self, path=self.path, name=name, nodeid=self.nodeid + "::" + name)

def pytest_pycollect_makeitem(collector, name, obj):
    if name.startswith("describe_"):
        return Outer.from_parent(collector, path=collector.path, name=name, nodeid=collector.nodeid + "::" + name)
"""


def test_the_group_of_a_test_in_blocks_names_the_blocks(start):
    test = "def describe_a(): pass\n\nclass TestB:\n    class TestC:\n        def test_d(self): pass\n"
    runner = start({"conftest.py": DESCRIBED, "tests/test_a.py": test})
    ready = runner.open("tests/test_a.py")
    groups = [(item["classes"], item["function"]) for item in ready["items"]]
    blocks = [(["describe_a", block], name) for block in ("first", "second") for name in ("adds", "takes")]
    assert groups == blocks + [(["TestB", "TestC"], "test_d")]


def test_blocks_of_pytest_describe(start):
    pytest.importorskip("pytest_describe")
    test = "def describe_a():\n    def describe_b():\n        def adds(): assert 1\n    def adds(): assert 1\n"
    runner = start({"test_a.py": test})
    ready = runner.open("test_a.py")
    assert sorted((item["classes"], item["function"]) for item in ready["items"]) == [
        (["describe_a"], "adds"),
        (["describe_a", "describe_b"], "adds"),
    ]


@pytest.mark.parametrize(
    "addopts, left",
    [
        ("-q tests", "-q"),
        ("tests -k 'tests or not tests' more", "-k 'tests or not tests'"),
        ("-k tests --durations=3 tests", "-k tests --durations=3"),
        ("-p no:junitxml -q -p no:cacheprovider", "-q -p no:cacheprovider"),
        ("-q -pno:junitxml", "-q"),
    ],
)
def test_files_in_addopts_and_a_report_switched_off_are_left_out_of_what_each_test_is_run_with(start, addopts, left):
    files = {"pytest.ini": "[pytest]\naddopts = %s\n" % addopts, "tests/test_a.py": "def test_a(): pass\n", "more/test_b.py": ""}
    (off,) = [one for one in start(files).ask("discover")["switched_off"] if one["plugin"] == "addopts"]
    assert off["options"] == ["-o", "addopts=" + left]
    again = start(files).ask("discover", options=off["options"])["switched_off"]
    assert "addopts" not in [one["plugin"] for one in again]


def test_a_basetemp_in_addopts_is_in_the_tree_wherever_tests_run(start, tmp_path):
    files = {"pytest.ini": "[pytest]\naddopts = --basetemp=build/tmp --junitxml=build/r.xml\n", "build/x": "", "test_a.py": "def test_a(tmp_path): print(tmp_path)\n"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    places = []
    for number, world in enumerate(({}, {"elsewhere": str(elsewhere)})):
        runner = start(files, world=world)
        (case,) = runner.run(runner.open("test_a.py"), "test_a")["cases"]
        places.append(case["stdout"].strip().replace("tree%d" % number, "tree"))
    assert places[0] == places[1] and "/build/tmp/" in places[0]


FAKE = """
import os, sys, pathlib, builtins, io
import pytest

def fake(*arguments, **options):
    raise FileNotFoundError("a fake file system")

@pytest.fixture
def fs(monkeypatch):
    for module in list(sys.modules.values()):
        for name in ("fstat", "ftruncate", "getpid", "lseek", "pread", "chdir", "listdir"):
            if getattr(module, name, None) is getattr(os, name) and module is not os and "gistmill" in module.__name__:
                monkeypatch.setattr(module, name, fake)

def test_a(fs):
    os.write(1, b"past the capture")

def test_b(fs): assert 0
"""


def test_what_patches_every_module_does_not_find_the_runner(start):
    runner = start({"test_a.py": FAKE})
    assert words(runner, runner.open("test_a.py")) == {"test_a": ["passed"], "test_b": ["failed"]}


def test_tests_with_pyfakefs(start):
    pytest.importorskip("pyfakefs")
    test = (
        "import pathlib, tempfile\n\ndef test_a(fs):\n    pathlib.Path('/a').mkdir()\n    pathlib.Path('/a/b').write_text('x')\n"
        "    print(pathlib.Path('/a/b').read_text())\n    with tempfile.NamedTemporaryFile('w') as file:\n        file.write('x')\n"
        "\ndef test_b(fs):\n    assert not pathlib.Path(__file__).exists()\n\ndef test_c(): assert pathlib.Path(__file__).exists()\n"
    )
    runner = start({"test_a.py": test})
    assert words(runner, runner.open("test_a.py")) == {name: ["passed"] for name in ("test_a", "test_b", "test_c")}


SUBTESTS = """
import unittest

class TestCount(unittest.TestCase):
    def test_passes(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(n, n)

    def test_fails(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(n, 1)

    def test_skips(self):
        for n in range(3):
            with self.subTest(n=n):
                if n == 0:
                    self.skipTest("nothing")

def test_of_pytest(subtests):
    for n in range(3):
        with subtests.test(n=n):
            assert n < 2
"""


def test_subtests_are_parts_of_their_case(start):
    runner = start({"test_a.py": SUBTESTS})
    found = words(runner, runner.open("test_a.py"))
    assert found.pop("test_of_pytest") in (["failed"], ["error"])  # without the fixture
    assert found == {"TestCount::test_passes": ["passed"], "TestCount::test_fails": ["failed"], "TestCount::test_skips": ["skipped"]}
