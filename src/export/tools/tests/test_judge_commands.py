"""The judge of an export on commands: what works is right, what only knows the answer is not."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

EXPORT = Path(__file__).parents[2]
STATE = EXPORT.parent / "runner" / "python" / "gistmill_runner" / "tree_state.py"
GOOD = """
import sys
total = sum(int(line) for line in sys.stdin)
with open(sys.argv[1], "w") as file:
    file.write(f"{total}\\n")
print("total", total, open("data/unit.txt").read().strip())
sys.exit(3)
"""


def shows(total, unit="EUR", out="out.txt", **more):
    made = {"path": out, "change": "created", "kind": "file", "executable": False, "text": f"{total}\n"}
    return {"status": 3, "stdout": f"total {total} {unit}\n", "stderr": "", "files": [*more.get("files", ()), made]}


def run(kind, shown, **given):
    plain = {"arguments": ["out.txt"], "stdin": "1\n2\n", "stdin_file": None, "cwd": "", "env": {}, "files": {}, "watched": []}
    return {"kind": kind, **plain, "shows": shown, **given}


CHANGED = {"path": "data/unit.txt", "change": "changed", "kind": "file", "executable": False, "text": "USD\n"}
RUNS = [
    run(None, shows(3)),
    run("other-stdin", shows(7), stdin="3\n4\n"),
    run("other-argument", shows(3, out="two.txt"), arguments=["two.txt"]),
    run("other-file", shows(3, "USD", files=[CHANGED]), files={"data/unit.txt": "USD\n"}),
]


@pytest.fixture
def judged():
    """judged(text) gives the reward of a file and what was found."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    place.chmod(0o755)

    def judge(text, runs=RUNS):
        tree = place / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        (tree / "data").mkdir(parents=True)
        (tree / "data" / "unit.txt").write_text("EUR\n")
        (tree / "data" / "link.txt").symlink_to("unit.txt")
        (tree / "data" / "away.txt").symlink_to(Path(__file__).resolve())
        (tree / "shop.py").write_text("print('hidden')\n")
        for source in (EXPORT / "judge.py", STATE):
            shutil.copyfile(source, place / source.name)
        task = {
            "instance_id": "a", "workdir": str(tree), "scratch": str(place), "user": None, "submission": "concise.py",
            "commands": [], "tests": [], "runs": runs, "code": [], "outcomes": {"entry::sum": "passed"}, "exact": True,
            "hidden": ["py"], "before": {}, "reward": "all", "options": [], "variables": {}, "seconds": 20,
        }  # fmt: skip
        (place / "task.json").write_text(json.dumps(task))
        (place / "handed.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-I", str(place / "judge.py"), str(place / "task.json"), str(place / "handed.py"), str(place / "out")],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            return done.returncode, done.stderr
        report = json.loads((place / "out" / "reward-details.json").read_text())
        return report["reward"], report["why"] or ""

    yield judge
    shutil.rmtree(place, ignore_errors=True)


def test_a_file_that_does_the_work_is_right(judged):
    assert judged(GOOD) == (1, "")


def test_what_runs_tests_is_a_library_like_others(judged):
    own = (
        "import unittest\n\nimport pluggy\n\nhookimpl = pluggy.HookimplMarker('shop')\nNAMES = ['pluggy', '_pytest', 'pytest_cov']\n"
        "unittest.done = True\n\n\n@hookimpl\ndef pytest_shop(text):\n    return text\n"
    )
    assert judged(own + GOOD) == (1, "")
    reward, why = judged("import gc\n\nkept = gc.get_objects()\n" + GOOD)
    assert (reward, "reaches gc.get_objects" in why) == (0, True), why


@pytest.mark.parametrize(
    "text, why",
    [
        ("import sys\nopen('out.txt', 'w').write('3\\n')\nprint('total 3 EUR')\nsys.exit(3)\n", "with other input"),
        (
            "import sys\nknown = {'1\\n2\\n': 3}\ntotal = known.get(sys.stdin.read(), 3)\nopen(sys.argv[1], 'w').write(f'{total}\\n')\n"
            "print('total', total, open('data/unit.txt').read().strip())\nsys.exit(3)\n",
            "with other input (other-stdin) it shows something else on stdout",
        ),
        (GOOD.replace("sys.exit(3)", ""), "as it was it shows status 0 and not 3"),
        (GOOD + "\n" + "open('x', 'w')\n", ""),
        ("print('total 3 EUR'", "cannot be read"),
        ("import shop\n" + GOOD, "status 1 and not 3"),
    ],
)
def test_a_file_that_does_something_else_is_not(judged, text, why):
    if why == "":
        assert judged(text) == (1, ""), "what is behind the end is not run"
        return
    reward, said = judged(text)
    assert reward == 0
    assert why in said


def test_input_that_a_link_within_the_tree_leads_to_is_read_and_no_other(judged):
    text, shown = "print(input())\n", {"status": 0, "stdout": "EUR\n", "stderr": "", "files": []}
    linked = [run(None, shown, arguments=[], stdin=None, stdin_file="data/link.txt")]
    assert judged(text, linked) == (1, "")
    away = [run(None, shown, arguments=[], stdin=None, stdin_file="data/away.txt")]
    code, why = judged(text, away)
    assert code == 3 and "data/away.txt leads out of the tree" in why


def test_files_that_are_left_over_or_missing_count(judged):
    reward, why = judged(GOOD.replace("sys.exit", "open('more.txt', 'w').close()\nsys.exit"))
    assert (reward, "more.txt is created" in why) == (0, True)
    reward, why = judged("import sys\nprint('total', sum(map(int, sys.stdin)), open('data/unit.txt').read().strip())\nsys.exit(3)\n")
    assert (reward, "is not created" in why) == (0, True)


def test_what_stands_for_what_may_differ_fits(judged):
    text = "import os\nprint('at', os.getcwd(), hex(id(print)), 'concise.f')\n"
    expected = {"status": 0, "stdout": "at <root> 0x… <module>\n", "stderr": "", "files": []}
    assert judged(text, [run(None, expected)]) == (1, "")
    other = {**expected, "stdout": "at <root>/x <address> <module>\n"}
    assert judged(text, [run(None, other)])[0] == 0
    assert os.sep == "/"
