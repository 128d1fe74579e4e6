"""What a group attempt reports, held against pytest's own words."""

import json
import os
import subprocess

from driver import PYTHON, outcomes

OUTCOMES = """
import pytest

def test_passes():
    print("to stdout")
    import sys
    print("to stderr", file=sys.stderr)

def test_fails():
    raise KeyError("this")

@pytest.fixture
def broken():
    raise ValueError("setup")

@pytest.fixture
def breaks_later():
    yield
    raise ValueError("teardown")

def test_setup(broken): pass
def test_teardown(breaks_later): pass

@pytest.mark.skip(reason="why not")
def test_skipped(): pass

@pytest.mark.xfail(reason="known")
def test_xfailed(): assert 0

@pytest.mark.xfail
def test_xpassed(): pass

@pytest.mark.xfail(strict=True)
def test_strict(): pass

def test_exit():
    pytest.exit("enough", 7)

def test_interrupt():
    raise KeyboardInterrupt

def test_system_exit():
    raise SystemExit(3)

def test_long():
    print("x" * 100_000, end="")

def test_undecodable():
    import os
    os.write(1, b"\\xff\\n")

def test_surrogate():
    pytest.fail("\\udcff")
"""


def test_every_outcome_has_its_word(start):
    runner = start({"test_a.py": OUTCOMES}, output_bytes=1000)
    ready = runner.open("test_a.py")

    def case(function):
        (only,) = runner.run(ready, function)["cases"]
        return only["outcome"], only["exception"]

    assert case("test_passes") == ("passed", None)
    assert case("test_fails") == ("failed", "builtins.KeyError")
    assert case("test_setup") == ("error", "builtins.ValueError")
    assert case("test_teardown") == ("error", "builtins.ValueError")
    assert case("test_skipped") == ("skipped", None)
    assert case("test_xfailed") == ("xfailed", "builtins.AssertionError")
    assert case("test_xpassed") == ("xpassed", None)
    assert case("test_strict") == ("failed", None)
    assert case("test_system_exit") == ("failed", "builtins.SystemExit")


def test_output_and_messages(start):
    runner = start({"test_a.py": OUTCOMES}, output_bytes=1000)
    ready = runner.open("test_a.py")
    (case,) = runner.run(ready, "test_passes")["cases"]
    assert (case["stdout"], case["stderr"], case["message"]) == ("to stdout\n", "to stderr\n", None)
    (case,) = runner.run(ready, "test_fails")["cases"]
    assert "KeyError: 'this'" in case["message"]
    (case,) = runner.run(ready, "test_skipped")["cases"]
    assert case["message"] == "Skipped: why not"
    (case,) = runner.run(ready, "test_long")["cases"]
    assert (len(case["stdout"]), case["truncated"], case["stdout_bytes"]) == (1000, True, 100_000)
    assert len(case["stdout_sha256"]) == 64
    (case,) = runner.run(ready, "test_undecodable")["cases"]
    assert case["stdout"] == "\ufffd\n"
    (case,) = runner.run(ready, "test_surrogate")["cases"]
    assert "\\udcff" in case["message"]


def test_told_to_stop_in_the_middle_of_a_case(start):
    runner = start({"test_a.py": OUTCOMES})
    ready = runner.open("test_a.py")
    done = runner.run(ready, "test_exit")
    assert (done["cases"], done["exit"]) == ([], {"kind": "exited", "code": 7})
    assert "enough" in done["pytest_error"]
    done = runner.run(ready, "test_interrupt")
    assert (done["cases"], done["exit"]) == ([], {"kind": "exited", "code": 2})


def test_output_outside_capture_is_kept_apart(start):
    runner = start({"test_a.py": "def test_a(capfd):\n    with capfd.disabled():\n        print('raw')\n"})
    ready = runner.open("test_a.py")
    for _ in range(2):
        done = runner.run(ready, "test_a")
        assert (done["raw_output"], done["cases"][0]["stdout"]) == ("raw\n", "")


def test_maxfail_of_the_repository_holds_within_a_group_only(start):
    runner = start(
        {
            "pytest.ini": "[pytest]\naddopts = -x\n",
            "test_a.py": "import pytest\n\n@pytest.mark.parametrize('a', range(3))\ndef test_a(a): assert a != 1\n\ndef test_b(): pass\n",
        }
    )
    ready = runner.open("test_a.py")
    done = runner.run(ready, "test_a")
    assert (outcomes(done), done["exit"]["kind"]) == (["passed", "failed"], "finished")
    assert outcomes(runner.run(ready, "test_b")) == ["passed"]


def test_error_in_one_class_leaves_the_rest_of_the_file(start):
    runner = start(
        {
            "pytest.ini": "[pytest]\naddopts = -x\n",
            "test_a.py": "import pytest\n\nclass TestBroken:\n    @pytest.mark.parametrize('nope', [1])\n    def test_x(self): pass\n\n"
            "class TestFine:\n    def test_y(self): pass\n",
        }
    )
    ready = runner.open("test_a.py")
    assert [error["kind"] for error in ready["errors"]] == ["error"]
    assert outcomes(runner.run(ready, "test_y")) == ["passed"]


def test_hooks_see_the_group_alone(start):
    runner = start(
        {
            "conftest.py": "def pytest_collection_modifyitems(config, items):\n"
            "    config.seen = 'modify %d %s' % (len(items), config.args)\n"
            "    dropped = [item for item in items if 'drop' in item.nodeid]\n"
            "    items[:] = [item for item in items if item not in dropped]\n"
            "    config.hook.pytest_deselected(items=dropped)\n",
            "test_a.py": "import pytest\n\n@pytest.mark.parametrize('a', ['drop', 'stay'])\ndef test_a(a, request): print(request.config.seen)\n\n"
            "def test_b(): pass\n",
        }
    )
    ready = runner.open("test_a.py")
    done = runner.run(ready, "test_a")
    assert [(case["index"], case["stdout"]) for case in done["cases"]] == [(1, "modify 2 ['test_a.py::test_a']\n")]


PARAMETRIZED = """
import pytest

LOG = []

@pytest.fixture(scope="module", params=["m1", "m2"])
def module_wide(request):
    print("up", request.param)
    yield request.param
    print("down", request.param)

@pytest.mark.parametrize("a", [1, 2])
def test_a(module_wide, a): print("a", a)

def test_b(module_wide): pass

@pytest.mark.parametrize("a", [1, 2])
def test_c(a, module_wide): print("c", a)

class TestD:
    @pytest.fixture(scope="class", params=[1, 2], autouse=True)
    def per_class(self, request): return request.param

    @pytest.mark.parametrize("x", "pq")
    @pytest.mark.parametrize("y", "rs")
    def test_d(self, module_wide, x, y): print("d", x, y)
"""


def test_cases_run_in_the_order_and_with_the_fixtures_of_the_entry_command(start, tmp_path):
    dump = (
        "import json, os\nseen = []\n"
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'teardown':\n"
        "        seen.append([report.nodeid, ''.join(text for name, text in report.sections if 'stdout' in name)])\n"
        "def pytest_unconfigure():\n    open(os.environ['DUMP'], 'w').write(json.dumps(seen))\n"
    )
    runner = start({"test_a.py": PARAMETRIZED})
    ready = runner.open("test_a.py")
    (tmp_path / "dumping.py").write_text(dump)
    ids = {item["index"]: item["node_id"] for item in ready["items"]}
    for function, group in (("test_a", "test_a"), ("test_c", "test_c"), ("test_d", "TestD::test_d")):
        environment = {"PYTHONPATH": str(tmp_path), "DUMP": str(tmp_path / "dump.json"), "PATH": "/usr/bin:/bin"}
        command = [PYTHON, "-m", "pytest", "-p", "dumping", "test_a.py::" + group]
        subprocess.run(command, cwd=tmp_path / "tree0", env=environment, check=True, stdout=subprocess.DEVNULL)
        cold = json.loads((tmp_path / "dump.json").read_text())
        done = runner.run(ready, function)
        assert [[ids[case["index"]], case["stdout"]] for case in done["cases"]] == cold


def test_random_numbers_differ_unless_seeded(start):
    runner = start(
        {
            "free/test_a.py": "import random\nrandom.random()\n\ndef test_a(): print(random.random())\n",
            "seeded/conftest.py": "import random\nrandom.seed(0)\n",
            "seeded/test_b.py": "import random\n\ndef test_b(): print(random.random())\n",
        }
    )

    def two(file, function):
        ready = runner.open(file)
        printed = [runner.run(ready, function)["cases"][0]["stdout"] for _ in range(2)]
        runner.ask("close")
        runner.ask("close")
        return printed

    first, second = two("free/test_a.py", "test_a")
    assert first != second
    assert two("seeded/test_b.py", "test_b") == ["0.8444218515250481\n"] * 2


def test_unittest_cases_and_subtests(start):
    runner = start(
        {
            "test_a.py": "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_fine(self): pass\n"
            "    def test_skip(self): self.skipTest('no')\n    @unittest.expectedFailure\n    def test_xfail(self): assert 0\n"
        }
    )
    ready = runner.open("test_a.py")
    assert {item["kind"] for item in ready["items"]} == {"function"}
    assert outcomes(runner.run(ready, "test_fine")) == ["passed"]
    assert outcomes(runner.run(ready, "test_skip")) == ["skipped"]
    assert outcomes(runner.run(ready, "test_xfail")) == ["xfailed"]


def test_ids_begin_at_the_root_of_the_tree_in_a_project_inside_a_project(start):
    for world in ({}, {"probe": "concise.py"}):
        runner = start(
            {
                "pyproject.toml": "[tool.pytest.ini_options]\n",
                "inner/pyproject.toml": "[tool.pytest.ini_options]\n",
                "inner/conftest.py": "import pytest\n\n@pytest.fixture\ndef shared(): return 7\n",
                "inner/tests/test_a.py": "class TestA:\n    def test_a(self, shared): print(shared)\n",
            },
            world=world,
        )
        ready = runner.open("inner/tests/test_a.py")
        assert [item["node_id"] for item in ready["items"]] == ["inner/tests/test_a.py::TestA::test_a"]
        done = runner.run(ready, "test_a")
        assert [(case["outcome"], case["stdout"]) for case in done["cases"]] == [("passed", "7\n")], done


def test_what_an_attempt_costs_does_not_grow_with_the_other_groups_of_its_file(start):
    text = "import pytest\n@pytest.mark.parametrize('value', range(%d))\ndef test_other(value): pass\ndef test_small(): pass\n"

    def faults(cases):
        runner = start({"test_many.py": text % cases})
        ready = runner.open("test_many.py")
        before = faults_of_session(runner.process.pid)
        for _ in range(5):
            assert outcomes(runner.run(ready, "test_small")) == ["passed"]
        return (faults_of_session(runner.process.pid) - before) / 5

    few, many = faults(10), faults(10_000)
    assert many < few + 100, (few, many)


def faults_of_session(session):
    """Minor page faults of all processes of a session and of the children that they have waited for."""
    total = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                total += int(fields[7]) + int(fields[8])
    return total


def test_processor_time_of_an_attempt_is_that_of_its_processes(start):
    runner = start({"test_busy.py": "import time\ndef test_busy():\n    end = time.process_time() + 0.2\n    while time.process_time() < end: pass\ndef test_waits(): time.sleep(0.2)\n"})
    ready = runner.open("test_busy.py")
    busy, waiting = runner.run(ready, "test_busy"), runner.run(ready, "test_waits")
    assert busy["processor_ms"] >= 200 and waiting["duration_ms"] >= 200 > waiting["processor_ms"]


def test_memory_of_an_attempt_is_its_own(start):
    text = "import subprocess, sys\nLARGE = 'x = b\"1\" * 200_000_000'\ndef test_large(): exec(LARGE)\ndef test_child(): subprocess.run([sys.executable, '-c', LARGE])\ndef test_small(): pass\n"
    runner = start({"test_memory.py": text})
    ready = runner.open("test_memory.py")
    large, child, small = (runner.run(ready, name)["memory_bytes"] for name in ("test_large", "test_child", "test_small"))
    assert min(large, child) >= 200_000_000 > small >= 1_000_000


def test_hypothesis_sums_up_what_it_did_only_where_it_did_something(start):
    runner = start(
        {
            "pytest.ini": "[pytest]\naddopts = -p _hypothesis_pytestplugin\n",
            "_hypothesis_pytestplugin.py": "def pytest_terminal_summary():\n    from hypothesis import done\n    done()\n",
            "hypothesis.py": "def done():\n    raise OSError('it was summed up')\n",
            "test_a.py": "def test_without():\n    pass\n\ndef test_with():\n    import hypothesis\n",
        }
    )
    ready = runner.open("test_a.py")
    without, uses = runner.run(ready, "test_without"), runner.run(ready, "test_with")
    assert outcomes(without) == outcomes(uses) == ["passed"]
    assert without["pytest_error"] is None, without
    assert "it was summed up" in uses["pytest_error"], uses
