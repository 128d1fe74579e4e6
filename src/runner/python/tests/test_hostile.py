"""Tests that harm their own process must not harm the report, the runner, or their neighbours."""

import os
import signal
import time

import pytest

from driver import Driver, outcomes, write_tree

HOSTILE = '''
import builtins, ctypes, os, signal, socket, subprocess, sys, time

def test_clean(): print("clean")

def test_exits(): os._exit(3)
def test_segfaults(): ctypes.string_at(0)
def test_aborts(): os.abort()
def test_kills_its_group(): os.killpg(0, signal.SIGKILL)
def test_kills_its_parent(): os.kill(os.getppid(), signal.SIGKILL)
def test_recurses():
    def deeper(): deeper()
    deeper()
def test_loops_in_c(): sum(iter(int, 1))
def test_stops(): os.kill(os.getpid(), signal.SIGSTOP)
def test_forks_and_returns(): os.fork()
def test_starts_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        os._exit(0)
    os.wait()
def test_closes_everything(): os.closerange(0, 4096)
def test_scribbles():
    for descriptor in range(3, 1000):
        try:
            os.write(descriptor, b'\\n@gistmill t0ken 2 {}\\n')
        except OSError:
            pass
def test_ignores_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
def test_lowers_recursion_limit(): sys.setrecursionlimit(100)
def test_replaces_time(): time.time = time.monotonic = time.perf_counter = time.sleep = lambda *a: 0
def test_replaces_more():
    import json
    builtins.open = os._exit = json.dumps = signal.signal = os.getpid = None
def test_changes_directory(): os.chdir("/")
def test_prints_much(): print("x" * 5_000_000)
def test_allocates(): bytearray(64 << 40)
def test_stops_its_parent(): os.kill(os.getppid(), signal.SIGSTOP); time.sleep(3600)
def test_stops_its_parent_and_passes(): os.kill(os.getppid(), signal.SIGSTOP)
def test_stops_its_grandparent():
    with open("/proc/%d/stat" % os.getppid()) as file:
        os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGSTOP)
    time.sleep(3600)
def test_slows_its_parent(): os.setpriority(os.PRIO_PROCESS, os.getppid(), 15)
def test_pins_its_parent(): os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})
def test_idles_its_parent(): os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, os.sched_param(0))
def test_slows_itself():
    os.nice(15)
    os.sched_setaffinity(os.getpid(), {min(os.sched_getaffinity(0))})
def report():
    import gc
    return next(one for one in gc.get_objects() if type(one).__name__ == "GroupReport")
def test_reports_bytes():
    import struct
    report().memory[64:128] = bytes(range(192, 256))
    struct.pack_into("@Q", report().memory, 0, 64)
    os._exit(0)
def test_reports_more_than_there_is():
    import struct
    struct.pack_into("@Q", report().memory, 0, 2**64 - 1)
    os._exit(0)
def test_reports_times_and_cases_that_cannot_be(): report().case_starts(-2**63, 2**63 - 1)
def test_reports_a_lone_surrogate():
    report().append("case", {"\\udc80": ["\\ud800", ("\\udfff", {"x": "\U0001f600"})]})
def test_connects():
    for target in (("192.0.2.1", 80), ("127.0.0.1", 9)):
        with socket.socket() as attempt:
            attempt.setblocking(False)
            try:
                attempt.connect(target)
            except OSError:
                pass
'''


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    driver = Driver(write_tree(tmp_path_factory.mktemp("hostile"), {"test_h.py": HOSTILE}), output_bytes=10_000)
    ready = driver.open("test_h.py")

    def run(function, **fields):
        return driver.run(ready, function, **fields)

    run.ready = ready
    run.open = lambda: driver.open("test_h.py")
    run.reopen = lambda: driver.ask("open_file", file="test_h.py")
    yield run
    driver.stop()


@pytest.fixture(autouse=True)
def neighbours_are_unaffected(hostile):
    yield
    done = hostile("test_clean")
    assert (outcomes(done), done["cases"][0]["stdout"], done["leftover"]) == (["passed"], "clean\n", 0)
    assert (done["raw_output"], done["exit"]["kind"]) == ("", "finished")


@pytest.mark.parametrize(
    "function, exit",
    [
        ("test_exits", {"kind": "exited", "code": 3}),
        ("test_segfaults", {"kind": "signaled", "signal": signal.SIGSEGV}),
        ("test_aborts", {"kind": "signaled", "signal": signal.SIGABRT}),
        ("test_kills_its_group", {"kind": "signaled", "signal": signal.SIGKILL}),
    ],
)
def test_death_has_its_facts(hostile, function, exit):
    done = hostile(function)
    assert (done["cases"], done["exit"]) == ([], exit)


@pytest.mark.parametrize("function", ["test_loops_in_c", "test_stops"])
def test_endless_case_times_out(hostile, function):
    begin = time.monotonic()
    done = hostile(function, case_timeout_ms=400)
    (index,) = [item["index"] for item in hostile.ready["items"] if item["function"] == function]
    assert done["exit"] == {"kind": "timed_out", "scope": "case", "index": index}
    assert time.monotonic() - begin < 18  # less than the limit of the group


def test_group_times_out(hostile):
    done = hostile("test_loops_in_c", case_timeout_ms=None, group_timeout_ms=400)
    assert (done["exit"]["kind"], done["exit"]["scope"]) == ("timed_out", "group")


def test_both_halves_of_a_fork_run_on_but_one_reports(hostile):
    done = hostile("test_forks_and_returns")
    assert (outcomes(done), done["exit"]["kind"]) == (["passed"], "finished")


def test_daemons_are_killed(hostile):
    done = hostile("test_starts_daemon")
    assert (outcomes(done), done["leftover"]) == (["passed"], 1)


@pytest.mark.parametrize(
    "function",
    [
        "test_scribbles",
        "test_ignores_signals",
        "test_lowers_recursion_limit",
        "test_replaces_time",
        "test_replaces_more",
        "test_changes_directory",
    ],
)
def test_harm_to_the_process_is_survived(hostile, function):
    done = hostile(function)
    assert (outcomes(done), done["exit"]["kind"]) == (["passed"], "finished")


def test_closed_descriptors_fail_the_case_as_they_do_cold(hostile):
    done = hostile("test_closes_everything")
    assert (outcomes(done), done["exit"]["kind"]) == (["failed"], "finished")


def test_large_output_is_cut(hostile):
    (case,) = hostile("test_prints_much")["cases"]
    assert (len(case["stdout"]), case["stdout_bytes"], case["truncated"]) == (10_000, 5_000_001, True)


@pytest.mark.parametrize("function, exception", [("test_recurses", "RecursionError"), ("test_allocates", "MemoryError")])
def test_exhaustion_is_a_failure(hostile, function, exception):
    (case,) = hostile(function)["cases"]
    assert (case["outcome"], case["exception"]) == ("failed", "builtins." + exception)


def test_connections_outside_the_loopback_are_noted(hostile):
    assert hostile("test_connects")["connections"] == ["192.0.2.1:80"]


def test_death_of_the_file_process_is_told_apart(hostile):
    died = hostile("test_kills_its_parent")
    assert (died["type"], died["level"]) == ("died", "file")
    assert hostile.reopen()["type"] == "file_ready"


@pytest.mark.parametrize(
    "function, level, signal_number",
    [
        ("test_stops_its_parent", "file", signal.SIGSTOP),
        ("test_stops_its_parent_and_passes", "file", signal.SIGSTOP),
        ("test_stops_its_grandparent", "directory", signal.SIGSTOP),
    ],
)
def test_a_level_that_is_stopped_is_ended_at_once(hostile, function, level, signal_number):
    begin = time.monotonic()
    died = hostile(function)
    assert (died["type"], died["level"]) == ("died", level)
    assert died["exit"] == {"kind": "signaled", "signal": signal_number}
    assert time.monotonic() - begin < 8  # less than the limit of a case
    ready = hostile.reopen() if level == "file" else hostile.open()
    assert ready["type"] == "file_ready"


@pytest.mark.parametrize("function", ["test_slows_its_parent", "test_pins_its_parent", "test_idles_its_parent"])
def test_a_level_whose_scheduling_a_test_changed_is_ended(hostile, function):
    if function == "test_pins_its_parent" and os.cpu_count() == 1:
        pytest.skip("one processor")
    assert outcomes(hostile(function)) == ["passed"]
    broken = hostile("test_clean")
    assert (broken["type"], broken["level"]) == ("broken", "file")
    assert "how it is scheduled" in broken["traceback"]
    assert hostile.reopen()["type"] == "file_ready"
    assert outcomes(hostile("test_clean")) == ["passed"]


def test_a_test_may_change_how_it_is_scheduled_itself(hostile):
    for function in ("test_slows_itself", "test_clean"):
        assert outcomes(hostile(function)) == ["passed"]


def test_a_report_that_is_no_text_does_not_leave(hostile):
    for function in ("test_reports_bytes", "test_reports_more_than_there_is"):
        assert hostile(function)["report"] is None


def test_a_report_is_not_looked_into_where_there_are_privileges(hostile):
    done = hostile("test_reports_times_and_cases_that_cannot_be")
    assert (outcomes(done), done["exit"]["kind"]) == (["passed"], "finished")
    assert hostile("test_reports_a_lone_surrogate")["cases"][0] == {"\\udc80": ["\\ud800", ["\\udfff", {"x": "\U0001f600"}]]}
