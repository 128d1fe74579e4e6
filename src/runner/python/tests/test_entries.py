"""What an attempt of a command shows, held against the command itself."""

import os
import subprocess

import pytest
from driver import PYTHON, write_tree

SHOP = '''
import argparse, atexit, os, sys, threading, time

def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("more", nargs="*")
    given = parser.parse_args(arguments)
    return globals()[given.what](*given.more)

def total(*numbers):
    print(sum(map(int, numbers)))

def raises():
    raise KeyError("this")

def leaves(status):
    sys.exit(int(status))

def complains():
    sys.exit("cannot")

def writes():
    os.makedirs("out/deep")
    with open("out/a.txt", "w") as file:
        file.write("written\\n")
    with open("out/b.bin", "wb") as file:
        file.write(b"\\0\\1")
    os.remove("old.txt")
    with open("kept.txt", "a") as file:
        file.write("more\\n")
    os.symlink("a.txt", "out/link")
    os.makedirs("__pycache__", exist_ok=True)

def asks():
    print(input("Name: "))

def reads():
    print(sys.stdin.read().upper())

def at_the_end():
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
    print("main")

def names():
    print(sys.argv[0], os.path.relpath(__file__), __name__)

def surroundings():
    print(sys.argv, sys.path[0], __name__, sorted(name for name in sys.modules if "pytest" in name or "gistmill" in name))
    print(vars(sys.modules["__main__"]).get("__file__"), getattr(sys.modules["__main__"].__spec__, "name", None))

def kills():
    os.kill(os.getpid(), 9)

def spins():
    while True:
        time.sleep(1)

if __name__ == "__main__":
    sys.exit(main())
'''
TREE = {
    "shop/__init__.py": "",
    "shop/__main__.py": SHOP,
    "tools/shop.py": SHOP,
    "tools/broken.py": "def f(:\n",
    "old.txt": "old\n",
    "kept.txt": "kept\n",
    "data/in.txt": "some text\n",
}


def script(*arguments, path="tools/shop.py", **fields):
    return {"name": "a", "command": {"kind": "script", "path": path, "arguments": list(arguments)}, "exit": 0, **fields}


def module(*arguments):
    return {"name": "m", "command": {"kind": "module", "name": "shop", "arguments": list(arguments)}, "exit": 0}


@pytest.fixture
def attempt(start):
    """attempt(entry) makes one attempt, and gives what was reported."""

    def make(entry, trace="off", **world):
        limit = world.pop("limit", 10_000)
        driver = start(TREE, world={"entries": [entry], **world})
        ready = driver.open("entry", trace=trace)
        return driver.run(ready, entry["name"], case_timeout_ms=limit)

    return make


def case(done):
    (one,) = done["cases"]
    return one


@pytest.mark.parametrize(
    "entry",
    [
        script("total", "1", "2"),
        script("raises"),
        script("leaves", "3"),
        script("complains"),
        script("nothing"),
        script("--help"),
        script("at_the_end"),
        script("surroundings"),
        script(path="tools/broken.py"),
        script(path="tools/missing.py"),
        module("total", "1"),
        module("raises"),
        module("--help"),
        module("surroundings"),
        {"name": "c", "command": {"kind": "code", "text": "import sys; print(sys.argv, __name__); sys.exit(3)", "arguments": ["x"]}},
    ],
)
def test_an_attempt_shows_what_the_command_shows(attempt, tmp_path, entry):
    done = attempt(entry)
    what = entry["command"]
    words = {"script": [what.get("path")], "module": ["-m", what.get("name")], "code": ["-c", what.get("text")]}[what["kind"]]
    cold = subprocess.run(
        [PYTHON, *words, *what["arguments"]],
        cwd=tmp_path / "tree0",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"},
    )
    shown = case(done) if done["cases"] else done
    assert (shown["status"], shown["stdout"], shown["stderr"]) == (cold.returncode, cold.stdout, cold.stderr)
    assert shown["outcome"] == ("passed" if cold.returncode == 0 else "failed")


def test_the_exception_that_ends_a_command_is_named(attempt):
    shown = case(attempt(script("raises")))
    assert (shown["exception"], shown["status"]) == ("KeyError", 1)
    assert "leaves with status 1, expected is 0" in shown["message"]


def test_an_expected_status_is_a_pass(attempt):
    assert case(attempt(script("leaves", "3", exit=3)))["outcome"] == "passed"


def test_files_that_change_are_part_of_what_is_shown(attempt):
    files = {one.pop("path"): one for one in case(attempt(script("writes")))["files"]}
    assert files == {
        "kept.txt": {"change": "changed", "kind": "file", "executable": False, "text": "kept\nmore\n"},
        "old.txt": {"change": "deleted", "kind": "file"},
        "out": {"change": "created", "kind": "folder"},
        "out/a.txt": {"change": "created", "kind": "file", "executable": False, "text": "written\n"},
        "out/b.bin": {
            "change": "created",
            "kind": "file",
            "executable": False,
            "sha256": "b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2",
        },
        "out/deep": {"change": "created", "kind": "folder"},
        "out/link": {"change": "created", "kind": "link", "text": "a.txt"},
    }


def test_who_asks_for_input_is_known(attempt):
    shown = case(attempt(script("asks")))
    assert (shown["wants"], shown["exception"]) == ("input", "EOFError")
    answered = case(attempt(script("asks", stdin={"text": "Ada\n"})))
    assert (answered["stdout"], answered.get("wants")) == ("Name: Ada\n", None)


def test_input_comes_from_a_file_of_the_tree(attempt):
    assert case(attempt(script("reads", stdin={"file": "data/in.txt"})))["stdout"] == "SOME TEXT\n\n"
    assert case(attempt(script("reads")))["stdout"] == "\n"


def test_a_folder_and_variables_are_those_of_the_entry(attempt):
    entry = script(path="tool.py", cwd="tools", env={"A": "1"})
    entry["command"] = {"kind": "code", "text": "import os; print(os.path.basename(os.getcwd()), os.environ['A'])", "arguments": []}
    assert case(attempt(entry))["stdout"] == "tools 1\n"


@pytest.mark.parametrize("entry", [script("names"), module("names")])
def test_the_probe_has_the_name_of_a_submission(attempt, entry):
    shown = case(attempt(entry, probe="concise.py"))
    assert shown["stdout"] == "concise.py concise.py __main__\n"
    assert shown["files"] == []


def test_what_is_killed_or_does_not_end_has_no_case(attempt):
    killed = attempt(script("kills"))
    assert (killed["cases"], killed["exit"]) == ([], {"kind": "signaled", "signal": 9})
    late = attempt(script("spins"), limit=500)
    assert (late["cases"], late["exit"]["kind"]) == ([], "timed_out")


def test_calls_of_the_tree_are_counted_from_the_first_line_on(attempt):
    done = attempt(script("total", "1"), trace="tree")
    assert done["internal"] is None
    called = {(one["file"], one["function"]): one["calls"] for one in done["trace"]["functions"]}
    assert called == {("tools/shop.py", "main"): 1, ("tools/shop.py", "total"): 1}
    assert done["trace"]["complete"] is True
    assert [body["name"] for body in done["trace"]["bodies"]] == ["<module>"]


def test_submodules_that_the_runner_imported_are_not_found_by_who_imports_the_package(start):
    text = 'import importlib; print(hasattr(importlib, "util")); import importlib.util; print(importlib.util.find_spec("json").name)'
    entry = {"name": "c", "command": {"kind": "code", "text": text, "arguments": []}, "exit": 0}
    for trace in ("off", "tree"):
        driver = start(TREE, world={"entries": [entry]})
        shown = case(driver.run(driver.open("entry", trace=trace), "c", case_timeout_ms=10_000))
        assert shown["stdout"] == "False\njson\n", (trace, shown)


def test_attempts_share_nothing(start):
    driver = start(TREE, world={"entries": [script("total", "1", "2"), {**module("raises"), "name": "b"}]})
    ready = driver.open("entry")
    for name, status in [("b", 1), ("a", 0), ("b", 1)]:
        assert case(driver.run(ready, name))["status"] == status


def test_the_runner_names_what_changed_for_a_cold_run_too(tmp_path):
    from driver import RUNNER

    tree = write_tree(tmp_path / "tree", TREE)
    program = [PYTHON, "-I", "-S", str(RUNNER.parent / "tree_state.py")]
    subprocess.run([*program, "before", str(tree), str(tmp_path / "state")], check=True)
    (tree / "new.txt").write_text("new")
    printed = subprocess.run([*program, "after", str(tree), str(tmp_path / "state")], check=True, capture_output=True)
    assert b'"path": "new.txt", "change": "created"' in printed.stdout


def test_a_text_is_run_in_the_place_of_a_submission(start):
    text = "import sys\nprint('given', sys.argv[1:], sys.argv[0])\nif len(sys.argv) > 2:\n    print('more')\n"
    entry = script("total", "1", path="concise.py")
    driver = start({"data/in.txt": "x\n"}, world={"entries": [entry], "submission": "concise.py"})
    ready = driver.open("entry", trace="lines", text=text)
    done = driver.run(ready, "a")
    assert done["internal"] is None
    assert case(done)["stdout"] == "given ['total', '1'] concise.py\nmore\n"
    assert case(done)["files"] == []
    assert [line for line, _ in done["execution"]["files"]["concise.py"]["lines"]] == [1, 2, 3, 4]
    untraced = driver.run(ready, "a", untraced=True)
    assert untraced.get("execution") is None
    assert case(untraced)["stdout"] == case(done)["stdout"]


def test_files_that_are_given_say_something_else(attempt):
    entry = script("reads", stdin={"file": "data/in.txt"}, given={"data/in.txt": "other text\n"})
    shown = case(attempt(entry))
    assert shown["stdout"] == "OTHER TEXT\n\n"
    assert shown["files"] == [
        {"path": "data/in.txt", "change": "changed", "kind": "file", "executable": False, "text": "other text\n"}
    ]


def test_what_a_text_asks_for_and_opens_is_noted(start):
    text = "open('data/in.txt').read()\ntry:\n    import shop.stock\nexcept ImportError:\n    pass\n"
    world = {"entries": [script(path="concise.py")], "submission": "concise.py", "watched": ["shop"], "notes_files": True}
    driver = start({"data/in.txt": "x\n"}, world=world)
    done = driver.run(driver.open("entry", text=text), "a")
    (asked,) = [one["module"] for one in done["imports"]]
    assert asked == "shop"
    assert done["opened"] == ["data/in.txt"]


def test_what_a_text_writes_into_its_report_does_not_say_how_it_ended(start):
    text = """
import gc, mmap, json, struct
for one in gc.get_objects():
    if type(one).__name__ == "GroupReport":
        one.append("case", {"index": 0, "outcome": "passed", "status": 0, "stdout": "forged"})
        one.append("end", {"pytest_exit": 0, "pytest_error": None})
print("own")
"""
    driver = start({"data/in.txt": "x"}, world={"entries": [script(path="concise.py")], "submission": "concise.py"})
    shown = case(driver.run(driver.open("entry", text=text), "a"))
    assert shown["stdout"] == "own\n"


TOOL = "import os, sys, %s as other\nimport own\nprint(other.__name__ in sys.modules, sys.argv[1:], own.NAME, open('data.txt').read())\n%s\n"
OTHERS = {
    "quiet": "",
    "random": "import random\n",
    "registers": "import atexit\natexit.register(print, 'at exit')\n",
    "reads": "import os, sys\nREAD = (sys.argv[1:], os.environ['MODE'], os.getcwd(), sys.modules['__main__'].__file__)\n",
    "loud": "print('imported')\n",
    "warns": "import warnings\nwarnings.warn('old')\n",
    "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
    "starts": "import subprocess\nPROCESS = subprocess.Popen(['sleep', '60'])\n",
    "back": "import own\n",
    "draws": "import os\nDRAWN = os.urandom(8).hex()\n",
    "process": "import os\nPROCESS = os.getpid()\n",
}


@pytest.fixture
def attempts(start, tmp_path):
    """attempts(other, text) makes four attempts of a command that imports a module of others, then runs a text. Gives what
    they printed, and how often the module was imported."""

    def make(other, text=""):
        path, noted = tmp_path / "site", tmp_path / "noted"
        note = "with open(%r, 'a') as file: file.write('%s\\n')\n"
        write_tree(path, {"other_%s.py" % other: note % (str(noted), "import") + OTHERS[other]})
        entry = {**script("x", path="tool.py"), "env": {"MODE": "m"}}
        files = {"tool.py": TOOL % ("other_" + other, text), "own.py": "NAME = __name__\n", "data.txt": "data"}
        driver = start(files, world={"entries": [entry]}, environment={"PYTHONPATH": str(path)})
        driver.send("run", items=[driver.open("entry")["items"][0]["index"]], case_timeout_ms=10_000, repeat=4)
        shown = [case(driver.receive()) for _ in range(4)]
        return [one["stdout"] + one["stderr"] for one in shown], len(noted.read_text().splitlines())

    return make


def prints(text=""):
    return "True ['x'] own data\n" + text


@pytest.mark.parametrize("other, text, more", [
    ("quiet", "", ""),
    ("registers", "", "at exit\n"),
    ("reads", "print(other.READ[:2], other.READ[2] == os.getcwd(), other.READ[3] == __file__)", "(['x'], 'm') True True\n"),
    ("quiet", "import threading; threading.Thread(target=print, args=('thread',)).start()", "thread\n"),
    ("quiet", "sys.stdout.flush(); os._exit(0)", ""),
])
def test_what_others_import_is_imported_ahead(attempts, other, text, more):
    shown, imports = attempts(other, text)
    # In the first attempt and ahead of the three others, unless the first one cannot say what it imported.
    assert (shown, imports) == ([prints(more)] * 4, 4 if "_exit" in text else 2)


@pytest.mark.parametrize("other, more", [
    ("loud", None), ("warns", None), ("threads", ""), ("starts", ""), ("back", ""),
])
def test_what_an_import_does_beside_that_is_done_in_each_attempt(attempts, other, more):
    shown, imports = attempts(other)
    assert (len(set(shown)), imports) == (1, 5)
    assert more is None or shown[0] == prints(more)


def test_what_is_drawn_while_importing_differs_between_attempts(attempts):
    shown, imports = attempts("draws", "print(other.DRAWN)")
    assert (len(set(shown)), imports) == (4, 5)
    shown, imports = attempts("process", "print(other.PROCESS == os.getpid())")
    assert (set(shown), imports) == ({prints("True\n")}, 5 + 5)


def test_a_command_that_looks_for_a_module_finds_it_only_when_it_imports_it(attempts):
    text = "import importlib; print(hasattr(importlib, 'util'), 'csv' in sys.modules)"
    shown, imports = attempts("quiet", text)
    assert (set(shown), imports) == ({prints("False False\n")}, 2)
    shown, imports = attempts("quiet", text + "; import csv")
    assert (set(shown), imports) == ({prints("False False\n")}, 2 + 5)


def test_chance_is_new_in_each_attempt(attempts, tmp_path):
    text = "import random\nwith open(%r, 'a') as file: file.write('%%r\\n' %% random.random())" % str(tmp_path / "drawn")
    shown, imports = attempts("random", text)
    assert (set(shown), imports) == ({prints()}, 2)
    assert len(set((tmp_path / "drawn").read_text().split())) == 4


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSTOP"])
def test_a_command_that_ends_what_it_is_a_fork_of_harms_nothing(attempts, signal):
    text = """
import signal
for one in open("/proc/%%d/task/%%d/children" %% (os.getppid(), os.getppid())).read().split():
    if int(one) != os.getpid():
        os.kill(int(one), signal.%s)""" % signal
    shown, imports = attempts("quiet", text)
    # The second attempt is a fork of it; there is none for the others.
    assert (set(shown), imports) == ({prints()}, 4)
