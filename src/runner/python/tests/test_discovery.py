"""A whole suite is collected although files of it end the process, hang, or have a conftest that cannot be loaded."""

import time

import pytest

CLEAN = "def test_it(): pass\n"
HARD_ENDS = {
    "test_exits.py": "import sys\nsys.exit('no')\n",
    "test_leaves.py": "import os\nos._exit(0)\n",
    "test_aborts.py": "import os\nos.abort()\n",
    "test_kills.py": "import os\nos.kill(os.getpid(), 9)\n",
    "test_stops.py": "import os\nos.kill(os.getpid(), 19)\n",
    "test_interrupts.py": "raise KeyboardInterrupt\n",
    "test_ends_pytest.py": "import pytest\npytest.exit('enough')\n",
}


def found_in(runner, **fields):
    found = runner.ask("discover", **{"args": [], "options": [], "timeout_ms": 60_000, **fields})
    assert found["type"] == "discovered", found
    return {item["file"] for item in found["items"]}, {error["file"]: error for error in found["errors"]}, found


@pytest.mark.parametrize("options", [[], ["-x"]])
def test_files_that_end_the_process_cost_themselves_only(start, options):
    clean = {"test_%s_clean.py" % letter: CLEAN for letter in "abmz"}
    runner = start({**HARD_ENDS, **clean, "sub/test_sub.py": CLEAN})
    files, errors, found = found_in(runner, options=options)
    assert files == {*clean, "sub/test_sub.py"}
    assert set(errors) == set(HARD_ENDS)
    assert {error["kind"] for error in errors.values()} == {"error"}
    assert "SystemExit: no" in errors["test_exits.py"]["text"]
    assert "pluggy" not in errors["test_exits.py"]["text"]
    assert "importing test_leaves.py ends the process: exit code 0" in errors["test_leaves.py"]["text"]
    assert "signal 6" in errors["test_aborts.py"]["text"]
    assert "signal 9" in errors["test_kills.py"]["text"]
    assert "signal 19" in errors["test_stops.py"]["text"]
    assert len({item["index"] for item in found["items"]}) == len(found["items"])


def test_files_that_hang_cost_their_limit_once(start):
    hangs = "import time\ntime.sleep(3600)\n"
    runner = start({"test_a.py": CLEAN, "test_b.py": hangs, "test_c.py": hangs, "test_d.py": CLEAN})
    begin = time.monotonic()
    files, errors, found = found_in(runner, timeout_ms=1500)
    assert files == {"test_a.py", "test_d.py"}
    assert {file: error["kind"] for file, error in errors.items()} == {"test_b.py": "timed_out", "test_c.py": "timed_out"}
    assert "importing test_b.py takes longer than the limit of 1.5 s" in errors["test_b.py"]["text"]
    assert 3 <= time.monotonic() - begin < 20
    # What is known is not tried again.
    begin = time.monotonic()
    again = found_in(runner, timeout_ms=60_000, known=found["at_fault"])
    assert (again[0], set(again[1])) == (files, set(errors))
    assert {error["kind"] for error in again[1].values()} == {"timed_out"}
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    "conftest, said",
    [
        ("raise LookupError('no such thing')\n", "LookupError: no such thing"),
        ("import missing_thing\n", "missing_thing"),
        ("import sys\nsys.exit(4)\n", "SystemExit: 4"),
        ("import os\nos._exit(4)\n", "importing broken/conftest.py ends the process: exit code 4"),
        ("import time\ntime.sleep(3600)\n", "importing broken/conftest.py takes longer than"),
    ],
)
def test_a_conftest_of_one_folder_costs_the_files_below_it(start, conftest, said):
    tree = {
        "conftest.py": "",
        "broken/conftest.py": conftest,
        "broken/test_b.py": CLEAN,
        "broken/deep/test_c.py": CLEAN,
        "fine/conftest.py": "import pytest\n@pytest.fixture\ndef one(): return 1\n",
        "fine/test_d.py": "def test_it(one): assert one == 1\n",
        "broken_not/test_e.py": CLEAN,
        "test_a.py": CLEAN,
    }
    files, errors, _ = found_in(start(tree), timeout_ms=2000)
    assert files == {"fine/test_d.py", "broken_not/test_e.py", "test_a.py"}
    assert set(errors) == {"broken/test_b.py", "broken/deep/test_c.py"}
    for error in errors.values():
        assert said in error["text"]
        assert error["kind"] == ("timed_out" if "longer" in said else "error")
        assert error["missing_module"] == ("missing_thing" if said == "missing_thing" else None)


def test_what_was_collected_long_before_a_death_is_not_collected_again(start):
    tree = {"test_%02d.py" % number: "import time\ntime.sleep(0.8)\n" + CLEAN for number in range(6)}
    tree.update({"test_%02d.py" % number: "import os\nos._exit(%d)\n" % number for number in range(6, 10)})
    begin = time.monotonic()
    files, errors, _ = found_in(start(tree))
    assert (len(files), len(errors)) == (6, 4)
    # Once all of it, and for each death no more than the last few seconds.
    assert time.monotonic() - begin < 6 * 0.8 + 4 * 3.5 + 5


def test_a_seed_of_the_root_conftest_is_kept(start):
    script = "import pytest, random\n@pytest.mark.parametrize('drawn', [random.random()])\ndef test_it(drawn): pass\n"
    names = set()
    for leaves in ("", "import os\nos._exit(1)\n"):
        runner = start({"conftest.py": "import random\nrandom.seed(5)\n", "test_a.py": leaves, "test_b.py": script})
        names.update(item["node_id"] for item in found_in(runner)[2]["items"])
    assert len(names) == 1, names


def test_trouble_between_the_files_is_the_repository_s(start):
    for hook, said in (
        ("os._exit(3)", "what runs between the files ends the process: exit code 3"),
        ("time.sleep(3600)", "what runs between the files takes longer than the limit of 2 s"),
        ("raise LookupError('hook')", "LookupError: hook"),
    ):
        conftest = "import os, time\ndef pytest_collection_modifyitems(items):\n    %s\n" % hook
        runner = start({"conftest.py": conftest, "test_a.py": CLEAN})
        failed = runner.ask("discover", args=[], options=[], timeout_ms=2000)
        assert (failed["type"], failed["stage"]) == ("failed", "collect")
        assert said in failed["error"]["text"]


@pytest.mark.parametrize("leaves", ["import sys\nsys.exit(2)\n", "import pytest\npytest.exit('enough')\n"])
def test_a_root_conftest_that_leaves_is_a_failed_configuration(start, leaves):
    failed = start({"conftest.py": leaves, "test_a.py": CLEAN}).ask("discover", args=[], options=[])
    assert (failed["type"], failed["stage"]) == ("failed", "configure")
    assert "conftest.py" in failed["error"]["text"]


def test_a_root_conftest_that_hangs_is_told(start):
    runner = start({"conftest.py": "import time\ntime.sleep(3600)\n", "test_a.py": CLEAN})
    late = runner.ask("discover", args=[], options=[], timeout_ms=500)
    assert (late["type"], late["level"], late["place"]) == ("timed_out", "discover", "")


def test_without_a_fork_the_place_at_fault_is_told(start):
    threads = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    runner = start({"conftest.py": threads, "test_a.py": CLEAN, "test_b.py": "import os\nos._exit(3)\n"})
    died = runner.ask("discover", args=[], options=[])
    assert (died["type"], died["place"]) == ("died", "test_b.py")
    known = [{"place": "test_b.py", "kind": "error", "text": "it ended the process"}]
    files, errors, _ = found_in(runner, known=known)
    assert (files, errors["test_b.py"]["text"]) == ({"test_a.py"}, "it ended the process")
