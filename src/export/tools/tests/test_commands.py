"""The commands, run as an agent runs them, on a small tree."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent
APP = """\
from .base import Base as Parent


class App(Parent):
    limit = 3

    @property
    def name(self):
        return self.limit

    def run(self, other):
        other.run()
        return self.name


def make():
    return App()
"""
TREE = {
    "src/shop/__init__.py": "from .app import App, make\n",
    "src/shop/app.py": APP,
    "src/shop/base.py": "class Base:\n    def run(self):\n        return 1\n",
    "src/shop/broken.py": "def run(:\n",
    "tests/test_app.py": "import shop.app as under_test\n\ndef test_run():\n    under_test.App().run(under_test.make())\n",
    "venv/pyvenv.cfg": "",
    "venv/lib/copy.py": "def run(): pass\n",
    ".hidden/copy.py": "def run(): pass\n",
    "concise.py": "def run():\n    return 2\n",
}
CALLS = [
    {"file": "tests/test_app.py", "function": "test_run", "line": 3, "calls": 1},
    {"file": "src/shop/app.py", "function": "make", "line": 16, "calls": 1},
    {"file": "src/shop/app.py", "function": "App.run", "line": 11, "calls": 2},
    {"file": "src/shop/app.py", "function": "App.name", "line": 7, "calls": 2},
    {"file": "src/shop/gone.py", "function": "f.<locals>.<lambda>", "line": 9, "calls": 7},
]
SAYS_SO = "import os, sys; print(open('concise.py').read(), os.environ['MODE'], os.environ['PYTEST_ADDOPTS']); sys.exit(3)"


class Bench:
    def __init__(self, folder):
        self.tree = folder / "tree"
        for name, text in TREE.items():
            self.put(name, text)
        self.place = folder / "task.json"
        self.task = {
            "workdir": str(self.tree),
            "submission": "concise.py",
            "check": [sys.executable, "-c", SAYS_SO],
            "options": ["-p", "no:xdist"],
            "variables": {"MODE": "quiet"},
            "seconds": 30,
            "execution": "bash",
            "tools": ["edit", "trace", "search"],
            "import_files": ["src/shop/__init__.py"],
            "trace": CALLS,
        }

    def put(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def run(self, *arguments, text="", **changes):
        """Exit code, lines of standard output, and standard error."""
        self.place.write_text(json.dumps(dict(self.task, **changes)))
        done = subprocess.run(
            [sys.executable, "-IB", str(PROGRAM), *arguments],
            input=text if isinstance(text, bytes) else text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=str(self.tree.parent),
            env=dict(os.environ, GISTIFY_TASK=str(self.place), LC_ALL="C"),
            timeout=60,
        )
        return done.returncode, done.stdout.decode().split("\n")[:-1], done.stderr.decode()

    def lines(self, *arguments, **changes):
        code, lines, error = self.run(*arguments, **changes)
        assert (code, error) == (0, ""), (lines, error)
        return lines

    def submission(self):
        return (self.tree / "concise.py").read_bytes()


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def edit(old, new):
    return "<<<<<<< old\n%s=======\n%s>>>>>>> new\n" % (old, new)


def test_a_file_is_written_and_run_with_the_options_and_variables_of_the_judge(bench):
    code, lines, _ = bench.run("write", text="x = 'é'\n")
    assert bench.submission() == "x = 'é'\n".encode()
    assert code == 3 and lines[0] == "concise.py: 1 lines" and lines[-1] == "exit 3", lines
    assert lines[2:4] == ["x = 'é'", " quiet -p no:xdist"], lines
    assert bench.run("run")[1] == lines[1:]


def test_nothing_is_run_where_that_is_not_wanted(bench):
    assert bench.lines("write", "--no-run", text="x = 1\n") == ["concise.py: 1 lines"]
    assert bench.lines("write", text="x = 2\n", execution="none") == ["concise.py: 1 lines"]
    code, _, error = bench.run("run", execution="none")
    assert code == 2 and "invalid choice" in error


def test_a_task_has_the_commands_of_its_tools_alone(bench):
    for tool, command in [("edit", "run"), ("trace", "trace"), ("search", "references")]:
        assert bench.run(command, "--help", tools=[tool])[0] == 0, command
        others = [one for one in ["edit", "trace", "search"] if one != tool]
        assert bench.run(command, "--help", tools=others)[0] == 2, command


def test_edits_change_lines_that_stand_there_once(bench):
    bench.put("concise.py", "def f():\n    return 1\n\n\ndef g():\n    return 1\n")
    edits = edit("def f():\n    return 1\n", "def f():\n    return 7\n    # é\n") + "\n" + edit("def g():\n", "def h():\n")
    bench.lines("replace", "--no-run", text=edits)
    assert bench.submission() == "def f():\n    return 7\n    # é\n\n\ndef h():\n    return 1\n".encode()
    bench.lines("replace", "--no-run", text=edit("    # é\n", ""))
    assert bench.submission() == b"def f():\n    return 7\n\n\ndef h():\n    return 1\n"


@pytest.mark.parametrize(
    "text, words",
    [
        (edit("    return 1\n", "x\n"), "edit 1 stand 2 times"),
        (edit("def f():\n", "x\n") + edit("def f():\n", "y\n"), "edit 2 stand 0 times"),
        (edit("", "x\n"), "no old lines"),
        (edit("def f():\n=======\n", "x\n"), "======= twice"),
        ("<<<<<<<\ndef f():\n>>>>>>>\n", "no ======="),
        ("<<<<<<<\ndef f():\n", "the old lines"),
        ("def f():\n", "outside of an edit"),
        ("", "the old lines"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(bench, text, words):
    before = "def f():\n    return 1\n\ndef g():\n    return 1\n"
    bench.put("concise.py", before)
    code, lines, error = bench.run("replace", text=text)
    assert (code, lines) == (2, []) and words in error, error
    assert bench.submission() == before.encode()


def test_no_text_is_no_file(bench):
    before = bench.submission()
    assert bench.run("write", text=" \n")[0] == 2 and bench.submission() == before
    (bench.tree / "concise.py").unlink()
    for command in ["run", "replace"]:
        code, _, error = bench.run(command, text=edit("x\n", "y\n"))
        assert code == 2 and "`gistify write` makes it" in error


def test_long_output_loses_its_middle(bench):
    script = "print('a' * 40000 + 'mid' 'dle' + 'b' * 40000)"
    _, lines, _ = bench.run("run", check=[sys.executable, "-c", script])
    text = "\n".join(lines)
    assert len(text) < 31000 and "middle" not in text and "[... 50007 bytes left out ...]" in text
    assert "aaaa" in text and "bbbb\nexit 0" in text


def test_a_run_that_does_not_end_is_stopped_and_so_is_what_it_leaves_behind(bench):
    marker = bench.tree / "late"
    leaves = "import subprocess, sys; print('out', flush=True); subprocess.Popen(['sh', '-c', 'sleep 2; touch late'])"
    started = time.monotonic()
    code, lines, _ = bench.run("run", check=[sys.executable, "-c", leaves])
    assert code == 0 and lines[-2:] == ["out", "exit 0"] and time.monotonic() - started < 2, lines
    check = [sys.executable, "-c", leaves + "; import time; time.sleep(60)"]
    code, lines, _ = bench.run("run", check=check, seconds=1)
    assert code == 124 and lines[-2:] == ["out", "stopped after 1 seconds"], lines
    time.sleep(2.5)
    assert not marker.exists()


def test_a_killed_run_and_a_command_that_is_not_there_are_told_apart(bench):
    kills = "import os; os.kill(os.getpid(), 9)"
    assert bench.run("run", check=[sys.executable, "-c", kills])[0] == 137
    code, _, error = bench.run("run", check=["no-such-command"])
    assert code == 2 and "no-such-command cannot be started" in error


def test_the_trace_has_calls_in_order_with_their_lines(bench):
    assert bench.lines("trace") == [
        "while the test's file is imported, these run:",
        "  src/shop/__init__.py",
        "5 functions, in the order of first calls:",
        "    1  tests/test_app.py:3-4  test_run  1 call",
        "    2  src/shop/app.py:16-17  make  1 call",
        "    3  src/shop/app.py:11-13  App.run  2 calls",
        "    4  src/shop/app.py:7-9  App.name  2 calls",
        "    5  src/shop/gone.py:9  f.<locals>.<lambda>  7 calls",
    ]


def test_the_trace_is_shown_in_parts(bench):
    assert bench.lines("trace", "--file", "src/*", "--limit", "1") == [
        "4 functions, in the order of first calls:",
        "    2  src/shop/app.py:16-17  make  1 call",
        "… and 3 more: --from 3",
    ]
    assert bench.lines("trace", "--from", "5")[1:] == ["    5  src/shop/gone.py:9  f.<locals>.<lambda>  7 calls"]
    assert bench.run("trace", "--limit", "0")[0] == 2


def test_definitions_are_found_by_plain_and_dotted_names(bench):
    unread = "left out: src/shop/broken.py is not Python that this interpreter reads: line 1: invalid syntax"
    assert bench.lines("definitions", "run") == [
        "2 definitions of run",
        "src/shop/app.py:11-13  def App.run  def run(self, other):",
        "src/shop/base.py:2-3  def Base.run  def run(self):",
        unread,
    ]
    for name in ["App.run", "app.App.run", "shop.app.App.run"]:
        assert bench.lines("definitions", name)[1].startswith("src/shop/app.py:11-13"), name
        assert bench.lines("definitions", name)[2] == unread
    assert bench.lines("definitions", "App.name")[1] == "src/shop/app.py:7-9  def App.name  def name(self):"
    assert bench.lines("definitions", "limit")[1] == "src/shop/app.py:5-5  value App.limit  limit = 3"
    assert bench.lines("definitions", "shop.App")[:2] == [
        "nothing is defined as shop.App; as App:",
        "1 definition of shop.App",
    ]
    code, lines, _ = bench.run("definitions", "nowhere")
    assert (code, lines) == (1, ["0 definitions of nowhere"])
    assert bench.run("definitions", "a b")[0] == 2


def test_references_are_told_apart_by_what_a_file_imports(bench):
    assert bench.lines("references", "Base") == [
        "2 references to Base",
        "src/shop/app.py:1  at the top  from .base import Base as Parent",
        "src/shop/app.py:4  at the top  class App(Parent):",
    ]
    assert bench.lines("references", "shop.app.make") == [
        "2 references to shop.app.make",
        "src/shop/__init__.py:1  at the top  from .app import App, make",
        "tests/test_app.py:4  in test_run  under_test.App().run(under_test.make())",
    ]
    assert bench.lines("references", "App.name") == [
        "1 reference to App.name",
        "src/shop/app.py:13  in App.run  return self.name",
    ]
    code, lines, _ = bench.run("references", "App.run")
    assert code == 1 and lines[0] == "0 references to App.run", lines
    assert lines[-1] == (
        "2 uses of another run, or of an object whose class cannot be told: gistify references run"
    )
    assert bench.lines("references", "run", "--limit", "1")[:3] == [
        "2 references to run",
        "src/shop/app.py:12  in App.run  other.run()",
        "… and 1 more: --limit",
    ]


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("deep.py", "target = " + "(" * 5000 + ")" * 5000, "src/shop/deep.py"),
        ("deep.py", "target = " + "-" * 50000 + "1", "src/shop/deep.py"),
        ("null.py", b"target = 1\0", "src/shop/null.py"),
        ("coded.py", b"# coding: no-such\ntarget = 1\n", "src/shop/coded.py"),
        ("latin.py", b"target = '\xe9'\n", "src/shop/latin.py"),
        ("large.py", "target = 1\n" + "#" * (5 << 20), "is larger than 4 MiB"),
        ("odd\x1b[31m\n.py", "target = (\n", "src/shop/odd\\x1b[31m\\n.py is not Python"),
    ],
)
def test_files_that_cannot_be_read_are_named_and_stop_nothing(bench, name, text, words):
    bench.put("src/shop/" + name, text)
    bench.put("src/shop/good.py", "target = 2\n")
    # Older parsers have words of their own on standard error.
    code, lines, _ = bench.run("definitions", "target")
    assert code == 0 and lines[1] == "src/shop/good.py:1-1  value target  target = 2"
    assert len(lines) == 3 and lines[2].startswith("left out: ") and words in lines[2], lines


def test_links_and_pipes_are_not_read(bench):
    os.mkfifo(str(bench.tree / "pipe.py"))
    os.symlink(str(bench.tree / "src/shop/base.py"), str(bench.tree / "link.py"))
    lines = bench.lines("definitions", "Base")
    assert lines[:2] == ["1 definition of Base", "src/shop/base.py:1-3  class Base  class Base:"]
    assert sorted(line.split()[2] for line in lines[2:]) == ["link.py", "pipe.py"], lines


def test_source_in_another_encoding_is_shown(bench):
    bench.put("src/shop/latin.py", "# coding: latin-1\nword = 'é'; café = 1\n".encode("latin-1"))
    assert bench.lines("definitions", "café")[1] == "src/shop/latin.py:2-2  value café  word = 'é'; café = 1"


def test_who_reads_the_first_lines_only_gets_no_error(bench):
    bench.put("many.py", "one = 1\n" * 20000)
    bench.place.write_text(json.dumps(bench.task))
    command = "%s -IB %s definitions one --limit 20000 | head -1" % (sys.executable, PROGRAM)
    done = subprocess.run(
        ["sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, GISTIFY_TASK=str(bench.place)),
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (b"20000 definitions of one\n", b"")
