"""The stack of processes and the messages between it and the driver."""

import json
import os
import signal
import struct

import pytest
from driver import outcomes

TWO_FILES = {
    "tests/conftest.py": "import sys\nsys.path.insert(0, 'lib')\n",
    "tests/test_a.py": "def test_one(): pass\n\ndef test_two(): assert 0\n",
    "tests/test_b.py": "import sys\n\ndef test_alone():\n    assert 'test_a' not in sys.modules\n",
}


def test_discovery_lists_every_item_and_every_error(start):
    runner = start(
        {
            **TWO_FILES,
            "pytest.ini": "[pytest]\ntestpaths = tests\naddopts = -q\n",
            "tests/test_c.py": "import not_there_at_all\n",
            "tests/test_d.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
            "tests/test_e.py": "def test_(: pass\n",
        }
    )
    found = runner.ask("discover", args=[], options=[])
    assert found["type"] == "discovered"
    assert [item["node_id"] for item in found["items"]] == [
        "tests/test_a.py::test_one",
        "tests/test_a.py::test_two",
        "tests/test_b.py::test_alone",
    ]
    errors = {error["file"]: error for error in found["errors"]}
    assert errors["tests/test_c.py"]["missing_module"] == "not_there_at_all"
    assert errors["tests/test_c.py"]["exception"] == "builtins.ModuleNotFoundError"
    assert (errors["tests/test_d.py"]["kind"], errors["tests/test_d.py"]["text"]) == ("skipped", "Skipped: not here")
    assert errors["tests/test_e.py"]["exception"] == "builtins.SyntaxError"


def test_files_of_a_directory_do_not_see_each_other(start):
    runner = start(TWO_FILES)
    ready = runner.open("tests/test_a.py")
    assert outcomes(runner.run(ready, "test_one")) == ["passed"]
    assert outcomes(runner.run(ready, "test_two")) == ["failed"]
    assert runner.ask("close")["type"] == "closed"
    ready = runner.ask("open_file", file="tests/test_b.py")
    assert outcomes(runner.run(ready, "test_alone")) == ["passed"]
    for _ in range(3):
        assert runner.ask("close")["type"] == "closed"
    assert runner.process.wait(60) == 0


def test_attempts_repeat_in_fresh_processes(start):
    runner = start({"test_a.py": "count = 0\n\ndef test_it():\n    global count\n    count += 1\n    assert count == 1\n"})
    ready = runner.open("test_a.py")
    identifier = runner.send("run", items=[0], repeat=3)
    for _ in range(3):
        done = runner.receive()
        assert (done["id"], outcomes(done)) == (identifier, ["passed"])
    assert ready["type"] == "file_ready"


def test_broken_conftest_is_a_failed_configuration(start):
    runner = start({"conftest.py": "import missing_thing\n", "test_a.py": "def test_a(): pass\n"})
    for operation, fields in (("discover", {"args": []}), ("open_directory", {"file": "test_a.py"})):
        failed = runner.ask(operation, options=[], **fields)
        assert (failed["type"], failed["stage"]) == ("failed", "configure")
        assert failed["error"]["missing_module"] == "missing_thing"
        assert "conftest.py" in failed["error"]["text"]


def test_unknown_option_is_a_failed_configuration(start):
    runner = start({"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_a.py": ""})
    failed = runner.ask("open_directory", file="test_a.py", options=[])
    assert (failed["type"], failed["stage"]) == ("failed", "configure")
    assert "--no-such-option" in failed["error"]["text"]


def test_missing_file_is_a_failed_collection_and_the_directory_goes_on(start):
    runner = start(TWO_FILES)
    assert runner.open("tests/test_a.py")["type"] == "file_ready"
    runner.ask("close")
    failed = runner.ask("open_file", file="tests/test_none.py")
    assert (failed["type"], failed["stage"]) == ("failed", "collect")
    assert runner.ask("open_file", file="tests/test_b.py")["type"] == "file_ready"


def test_module_that_cannot_be_imported_is_an_error_of_the_file(start):
    runner = start({"test_a.py": "1 / 0\n"})
    ready = runner.open("test_a.py")
    assert ready["items"] == []
    assert ready["errors"][0]["exception"] == "builtins.ZeroDivisionError"
    assert "1 / 0" in ready["errors"][0]["text"]


def test_death_during_import_is_reported_by_the_parent(start):
    runner = start(
        {
            "test_a.py": "import os\nos._exit(3)\n",
            "test_b.py": "import os\nos.abort()\n",
            "test_c.py": "def test_c(): pass\n",
            "dead/conftest.py": "import os\nos._exit(5)\n",
            "dead/test_d.py": "",
        }
    )
    assert runner.ask("open_directory", file="test_a.py", options=[])["type"] == "directory_ready"
    died = runner.ask("open_file", file="test_a.py")
    assert (died["type"], died["level"], died["exit"]) == ("died", "file", {"kind": "exited", "code": 3})
    died = runner.ask("open_file", file="test_b.py")
    assert died["exit"] == {"kind": "signaled", "signal": signal.SIGABRT}
    assert runner.ask("open_file", file="test_c.py")["type"] == "file_ready"
    runner.ask("close")
    runner.ask("close")
    died = runner.ask("open_directory", file="dead/test_d.py", options=[])
    assert (died["type"], died["level"], died["exit"]["code"]) == ("died", "directory", 5)
    assert runner.ask("discover", args=["test_c.py"], options=[])["type"] == "discovered"


def test_late_import_times_out(start):
    runner = start({"test_a.py": "import time\ntime.sleep(60)\n", "test_b.py": "def test_b(): pass\n"})
    runner.ask("open_directory", file="test_a.py", options=[])
    late = runner.ask("open_file", file="test_a.py", timeout_ms=300)
    assert (late["type"], late["level"]) == ("timed_out", "file")
    assert runner.ask("open_file", file="test_b.py", timeout_ms=20_000)["type"] == "file_ready"
    assert runner.ask("discover", args=[], options=[])["type"] == "refused"  # not while a file is open
    runner.ask("close")
    runner.ask("close")
    found = runner.ask("discover", args=["test_a.py"], options=[], timeout_ms=300)
    assert [error["kind"] for error in found["errors"]] == ["timed_out"]


def test_idle_death_is_told_to_the_next_request(start):
    runner = start({"test_a.py": "import os\nprint(os.getpid())\nPID = os.getpid()\n\ndef test_a(): print(PID)\n"})
    ready = runner.open("test_a.py")
    file_process = int(runner.run(ready, "test_a")["cases"][0]["stdout"])
    os.kill(file_process, signal.SIGKILL)
    died = runner.ask("run", items=[0])
    assert (died["type"], died["level"]) == ("died", "file")
    assert runner.ask("open_file", file="test_a.py")["type"] == "file_ready"


def request_in_two_parts(runner, between):
    """Asks for a run, and does something when a part of the request is under way."""
    message = json.dumps({"op": "run", "id": 99, "items": [0]}).encode()
    os.write(runner.requests, struct.pack(">I", len(message)) + message[:7])
    between()
    os.write(runner.requests, message[7:])
    return runner.receive()


def test_a_death_in_the_middle_of_a_request_is_answered(start):
    runner = start({"test_a.py": "import os\n\ndef test_a(): print(os.getppid())\n"})
    file_process = int(runner.run(runner.open("test_a.py"), "test_a")["cases"][0]["stdout"])
    died = request_in_two_parts(runner, lambda: os.kill(file_process, signal.SIGKILL))
    assert (died["id"], died["type"], died["level"]) == (99, "died", "file")
    assert runner.ask("open_file", file="test_a.py")["type"] == "file_ready"


@pytest.mark.parametrize("victim", ["directory", "directory, in the middle of a request"])
def test_the_death_of_a_directory_is_answered_for_its_file(start, victim):
    script = (
        "import os, signal\n"
        "def parent(pid): return int(open('/proc/%d/stat' % pid).read().rpartition(')')[2].split()[1])\n"
        "DIRECTORY = parent(os.getpid())\n\n"
        "def test_tells(): print(DIRECTORY)\n"
        "def test_kills():\n    os.kill(DIRECTORY, signal.SIGKILL)\n    signal.pause()\n"  # until the death arrives
    )
    runner = start({"test_a.py": script})
    ready = runner.open("test_a.py")
    directory = int(runner.run(ready, "test_tells")["cases"][0]["stdout"])
    if victim == "directory":
        died = runner.run(ready, "test_kills")
    else:
        died = request_in_two_parts(runner, lambda: os.kill(directory, signal.SIGKILL))
    assert (died["type"], died["level"]) == ("died", "directory")
    assert runner.open("test_a.py")["type"] == "file_ready"


def test_node_ids_arrive_whole(start):
    runner = start(
        {
            "test_a.py": "import pytest\n\n@pytest.mark.parametrize('a', [1, 2], ids=['x::y [z]', 'é'])\n"
            "class TestÄ:\n    class TestInner:\n        def test_it(self, a): pass\n"
        }
    )
    items = runner.open("test_a.py")["items"]
    assert [item["parameters"] for item in items] == ["x::y [z]", "\\xe9"]
    assert items[0]["node_id"] == "test_a.py::TestÄ::TestInner::test_it[x::y [z]]"
    assert (items[0]["classes"], items[0]["function"]) == (["TestÄ", "TestInner"], "test_it")
    assert (items[0]["kind"], items[0]["markers"], items[0]["fixtures"]) == ("function", ["parametrize"], ["a"])


def test_the_process_looks_like_the_entry_command(start):
    script = (
        "import json, os, random, signal, sys, threading\n"
        "def test_look():\n"
        "    main = sys.modules['__main__']\n"
        "    print(json.dumps([sys.argv[1:], os.path.basename(sys.argv[0]), sys.path[0] == os.getcwd(), main.__spec__.name,\n"
        "        os.path.basename(main.__file__), [p for p in sys.path if 'gistmill' in p], sorted(signal.pthread_sigmask(0, [])),\n"
        "        signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, os.getpid() == os.getsid(0), threading.active_count(), main.__name__]))\n"
    )
    runner = start({"test_a.py": script})
    printed = runner.run(runner.open("test_a.py"), "test_look")["cases"][0]["stdout"]
    assert json.loads(printed) == [
        ["test_a.py::test_look"], "__main__.py", True, "pytest.__main__", "__main__.py", [], [], True, True, 1, "__main__",
    ]


def test_a_file_that_writes_to_every_descriptor_speaks_for_itself_alone(start):
    scribbles = (
        "import os\nfor fd in range(3, 900):\n    try:\n        os.write(fd, b'@gistmill t 5 {\\n noise' * 9)\n"
        "    except OSError:\n        pass\n\ndef test_a(): pass\n"
    )
    runner = start({"test_a.py": scribbles, "test_b.py": "def test_b(): pass\n"})
    broken = runner.open("test_a.py")
    assert (broken["type"], broken["level"], broken["traceback"]) == ("broken", "file", "a message is too long")
    assert outcomes(runner.run(runner.ask("open_file", file="test_b.py"), "test_b")) == ["passed"]


def test_the_codec_of_host_names_is_there_but_where_calls_are_counted_or_the_tree_has_its_modules(start):
    test = "import sys\n\ndef test_one():\n    assert ('encodings.idna' in sys.modules) is %r\n    'a'.encode('idna')\n"
    for trace in ("off", "tree"):
        runner = start({"test_a.py": test % (trace == "off")})
        assert outcomes(runner.run(runner.open("test_a.py", trace), "test_one")) == ["passed"]
    shadowed = test % False + "    assert sys.modules['stringprep'].MINE\n"
    runner = start({"test_a.py": shadowed, "stringprep.py": "from re import *\nMINE = in_table_a1 = in_table_b1 = 1\n"})
    done = runner.run(runner.open("test_a.py"), "test_one")
    assert outcomes(done) == ["passed"], done["cases"]
