"""What a level says, does or leaves behind is its own: the keeper answers for it, and the next one finds all as it was."""

import time

import pytest

from driver import outcomes
from test_isolation import SANDBOX, isolated  # noqa: F401 (a fixture)

OTHER = "def test_b(): pass\n"
SOCKETS = """
import json, os, socket, stat, struct, time
def sockets():
    for number in range(3, 1000):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                yield number
        except OSError:
            pass
def say(kind, content):
    text = json.dumps(content).encode()
    for number in sockets():
        os.write(number, struct.pack(">HI", len(kind), len(text)) + kind.encode() + text)
"""

# What a file does while it is imported, and what is answered for it.
BREAKS = {
    "an answer of another kind": ("say('group_done', {})", "an answer that does not fit"),
    "an answer of the keeper's": ("say('internal_error', {'traceback': 'x'})", "an answer that does not fit"),
    "the end of a level": ("say('ended', {'exit': {}, 'late': False, 'place': None})", "an answer that does not fit"),
    "a fork": ("say('forked', {'process': 1})", "an answer that does not fit"),
    "a message of four gigabytes": ("[os.write(one, struct.pack('>HI', 3, 2**32 - 1)) for one in sockets()]", "too long"),
    "a long name": ("[os.write(one, struct.pack('>HI', 999, 0) + b'x' * 999) for one in sockets()]", "too long"),
    "a failure that is no text": ("say('broken', ['x'])", "cannot say how"),
    "a failure of its own": ("say('broken', {'traceback': 'mine'})", "mine"),
    "the describer": ("import sys; sys.modules['gistmill_runner.collect'].Describer.item = None", "TypeError"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_file_that_says_what_it_cannot_mean_is_broken_and_the_next_one_is_not(start, name):
    act, said = BREAKS[name]
    runner = start({"test_a.py": SOCKETS + act + "\ndef test_a(): pass\n", "test_b.py": OTHER})
    broken = runner.open("test_a.py", timeout_ms=20_000)
    assert (broken["type"], broken["level"]) == ("broken", "file") and said in broken["traceback"]
    assert outcomes(runner.run(runner.ask("open_file", file="test_b.py"), "test_b")) == ["passed"]


@pytest.mark.parametrize(
    "act",
    [
        "[os.write(one, struct.pack('>HI', 10, 9999999) + b'file_ready{') for one in sockets()]; time.sleep(60)",
        "while True:\n    for one in sockets(): os.set_blocking(one, True); os.read(one, 1 << 16)",
        "os.kill(os.getpid(), 19)",
        "[os.close(one) for one in sockets()]; time.sleep(60)",
    ],
)
def test_a_file_that_never_answers_takes_its_own_time_and_no_more(start, act):
    runner = start({"test_a.py": SOCKETS + act + "\ndef test_a(): pass\n", "test_b.py": OTHER})
    runner.ask("open_directory", file="test_a.py", options=[])
    begin = time.monotonic()
    late = runner.ask("open_file", file="test_a.py", timeout_ms=1000)
    assert late["type"] in ("timed_out", "died") and late["level"] == "file" and time.monotonic() - begin < 10
    assert outcomes(runner.run(runner.ask("open_file", file="test_b.py"), "test_b")) == ["passed"]


def test_a_conftest_that_says_what_it_cannot_mean_is_broken_as_well(start):
    files = {"a/conftest.py": SOCKETS + "say('file_ready', {})\n", "a/test_a.py": OTHER, "test_b.py": OTHER}
    runner = start(files)
    broken = runner.ask("open_directory", file="a/test_a.py", options=[], timeout_ms=20_000)
    assert (broken["type"], broken["level"]) == ("broken", "directory")
    assert outcomes(runner.run(runner.open("test_b.py"), "test_b")) == ["passed"]


def test_an_attempt_that_its_file_does_not_answer_for_is_over_in_time(start):
    swallows = "import sys\nsys.modules['gistmill_runner.group_run'].GroupRunner._answer = lambda *a: __import__('time').sleep(60)\n"
    runner = start({"test_a.py": swallows + "def test_a(): pass\n", "test_b.py": OTHER})
    late = runner.run(runner.open("test_a.py"), "test_a", group_timeout_ms=500)
    assert (late["type"], late["level"]) == ("timed_out", "file")
    assert outcomes(runner.run(runner.ask("open_file", file="test_b.py"), "test_b")) == ["passed"]


LEAVES = """
import os, signal, sys, time, ctypes
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        time.sleep(600)
    os._exit(0)
os.wait()
def test_a(): pass
"""
COUNTS = """
import os
def left():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % process, "rb") as file:
                yield b"THIS_TREE=1" in file.read() and int(process)
        except OSError:
            pass
def test_b(): print(sum(map(bool, left())))
"""


def test_what_a_file_leaves_running_ends_with_it(start):
    runner = start({"test_a.py": LEAVES, "test_b.py": COUNTS}, environment={"THIS_TREE": "1"})
    before = runner.open("test_b.py")
    alone = runner.run(before, "test_b")["cases"][0]["stdout"]
    runner.ask("close")
    assert runner.ask("open_file", file="test_a.py")["type"] == "file_ready"
    assert runner.ask("close")["type"] == "closed"
    assert runner.run(runner.ask("open_file", file="test_b.py"), "test_b")["cases"][0]["stdout"] == alone


def test_a_text_is_not_in_the_memory_of_the_process_that_the_next_one_is_forked_from(start):
    secret = "of-an-earlier-submission"
    looks = (
        "import os, re\n\ndef test_b():\n    found = 0\n    for line in open('/proc/self/maps'):\n"
        "        place, rights = line.split()[:2]\n        first, last = (int(one, 16) for one in place.split('-'))\n"
        "        if not rights.startswith('rw'): continue\n"
        "        try:\n            with open('/proc/self/mem', 'rb', buffering=0) as memory:\n                memory.seek(first)\n"
        "                found += len(re.findall(b'of-an-[e]arlier-[s]ubmission', memory.read(last - first)))\n"
        "        except (OSError, ValueError, OverflowError): pass\n    print(found)\n"
    )
    # The search finds what is there.
    found = start({"concise.py": looks + "SECRET = %r\n" % secret})
    assert int(found.run(found.open("concise.py"), "test_b")["cases"][0]["stdout"]) > 0
    runner = start({"concise.py": ""})
    runner.ask("open_directory", file="concise.py", options=[])
    text = "SECRET = %r\ndef test_a(): pass\n" % secret
    assert runner.ask("open_file", file="concise.py", text=text)["type"] == "file_ready"
    runner.ask("close")
    ready = runner.ask("open_file", file="concise.py", text=looks)
    assert runner.run(ready, "test_b")["cases"][0]["stdout"] == "0\n"


PRIVILEGES = """
import ctypes, os, sys
def held():
    with open("/proc/self/status") as status:
        found = dict(line.split(":", 1) for line in status)
    sets = [int(found[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")]
    mounted = ctypes.CDLL(None).umount2(os.environ["ROOT"].encode(), 2)
    # Whoever may read its own memory map can be looked into by others of its user.
    return [sets, mounted, os.access("/proc/self/environ", os.R_OK)]
AT_IMPORT = held()
def opens(process):
    try:
        open("/proc/%d/mem" % process, "rb").close()
        return True
    except OSError:
        return False
def test_a():
    with open("/proc/%d/stat" % os.getppid()) as file:
        above = int(file.read().rpartition(")")[2].split()[1])
    print(AT_IMPORT, held(), [opens(os.getppid()), opens(above)])
"""


def test_an_import_holds_what_a_test_holds(isolated):  # noqa: F811
    isolated.ask("open_directory", file="test_a.py", options=[])
    ready = isolated.ask("open_file", file="test_a.py", text=PRIVILEGES)
    (case,) = isolated.run(ready, "test_a")["cases"]
    none = "[[0, 0, 0, 0], -1, True]"
    assert case["stdout"] == "%s %s [False, False]\n" % (none, none), case
