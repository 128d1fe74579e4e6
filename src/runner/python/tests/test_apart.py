"""Threads and child processes that are started while a file or its conftest is imported: its groups have them, as cold."""

import pytest

from driver import outcomes

LOOP = """
import asyncio, threading
LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()

async def slowly():
    await asyncio.sleep(0.01)
    return 7

def compute():
    return asyncio.run_coroutine_threadsafe(slowly(), LOOP).result(timeout=3)
"""
QUEUE = """
import queue, _thread
asked, answered = queue.Queue(), queue.Queue()

def work():
    while True:
        answered.put(asked.get() + 1)

_thread.start_new_thread(work, ())

def compute():
    asked.put(6)
    return answered.get(timeout=3)
"""
POOL = """
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(int).result()

def compute():
    return pool.submit(int, "7").result(timeout=3)
"""
SERVER = """
import http.server, threading, urllib.request

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"7")

    def log_message(self, *arguments):
        pass

server = http.server.HTTPServer(("127.0.0.1", %d), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()

def compute():
    return int(urllib.request.urlopen("http://127.0.0.1:%%d/" %% server.server_port, timeout=3).read())
"""
CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print(input() * 7)"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def compute():
    text = child.communicate(b"1\\n")[0]
    assert child.returncode == 0
    return len(text) - 1
"""
TEST = "from worker import compute\n\ndef test_a(): assert compute() == 7\n\ndef test_b(): print('b')\n"
KINDS = {"loop": LOOP, "queue": QUEUE, "pool": POOL, "server": SERVER % 0, "server of one port": SERVER % 18977, "child": CHILD}


@pytest.mark.parametrize("name", KINDS)
def test_what_the_package_starts_while_a_file_imports_it(start, name):
    runner = start({"worker.py": KINDS[name], "test_a.py": TEST, "test_c.py": "def test_c(): pass\n"})
    ready = runner.open("test_a.py")
    for function in ("test_a", "test_b", "test_a"):
        done = runner.run(ready, function)
        assert (outcomes(done), done["exit"]) == (["passed"], {"kind": "finished"}), done["cases"]
    assert runner.ask("close")["type"] == "closed"
    ready = runner.ask("open_file", file="test_c.py")
    assert outcomes(runner.run(ready, "test_c")) == ["passed"]
    assert runner.ask("close")["type"] == "closed"
    assert outcomes(runner.run(runner.ask("open_file", file="test_a.py"), "test_a")) == ["passed"]


@pytest.mark.parametrize("name", ["loop", "server of one port"])
def test_what_a_conftest_starts(start, name):
    files = {"a/worker.py": KINDS[name], "a/conftest.py": "import worker\n", "a/test_a.py": TEST, "test_c.py": "def test_c(): pass\n"}
    runner = start(files)
    ready = runner.open("a/test_a.py")
    assert [item["node_id"] for item in ready["items"]] == ["a/test_a.py::test_a", "a/test_a.py::test_b"]
    assert outcomes(runner.run(ready, "test_a")) == outcomes(runner.run(ready, "test_a")) == ["passed"]
    for _ in "ab":
        assert runner.ask("close")["type"] == "closed"
    assert outcomes(runner.run(runner.open("test_c.py"), "test_c")) == ["passed"]


def test_how_a_group_ends_is_its_own(start):
    runner = start({"test_a.py": LOOP + "import os\n\ndef test_a(): os._exit(5)\n\ndef test_b(): compute() and 1 / 0\n"})
    ready = runner.open("test_a.py")
    assert runner.run(ready, "test_a")["exit"] == {"kind": "exited", "code": 5}
    (case,) = runner.run(ready, "test_b")["cases"]
    assert (case["outcome"], case["exception"]) == ("failed", "builtins.ZeroDivisionError")
    assert runner.ask("close")["type"] == "closed"


def test_a_file_that_cannot_be_collected_again_has_no_tests_the_next_time(start):
    twice = LOOP + "with open('made', 'a') as made:\n    assert made.write('x') and made.tell() < 3\n"
    runner = start({"test_a.py": twice + "def test_a(): pass\n"})
    done = runner.run(runner.open("test_a.py"), "test_a")
    assert done["exit"] == {"kind": "exited", "code": 4} and "AssertionError" in done["pytest_error"], done


def test_a_trace_of_such_a_group_counts_what_a_cold_run_calls(start):
    plain = {"worker.py": "def compute(): return int('7')\ncompute()\n", "test_a.py": TEST}
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    threaded = {"worker.py": plain["worker.py"] + thread}
    traces = []
    for files in (plain, {**plain, **threaded}):
        runner = start(files)
        ready = runner.open("test_a.py", trace="calls")
        assert ready["import"]["calls"] > 0
        traces.append(runner.run(ready, "test_a")["trace"]["functions"])
    assert traces[0] == traces[1] != []


def test_worlds_are_those_of_other_files(start, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    test = "import os\n" + TEST + "def test_place(): print(os.getcwd(), __name__)\n"
    runner = start({"worker.py": LOOP, "a/test_a.py": test}, world={"elsewhere": str(elsewhere), "probe": "probe_x.py"})
    ready = runner.open("a/test_a.py")
    (case,) = runner.run(ready, "test_place")["cases"]
    assert case["stdout"].split() == [str(elsewhere), "probe_x"]
    assert outcomes(runner.run(ready, "test_a")) == ["passed"]
