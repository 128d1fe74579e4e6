"""The judge of refactorings on a small repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXPORT = Path(__file__).parent.parent.parent
CORE = "def old_name(a):\n    return a + 1\n\n\ndef caller(b):\n    return old_name(b)\n"
TESTS = "from core import caller\n\n\ndef test_one():\n    assert caller(1) == 2\n\n\ndef test_two():\n    assert caller(2) == 3\n"
BROKEN = "def test_broken():\n    assert False\n"


def git(tree, *words):
    done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def court(tmp_path):
    """A tree with one commit, a task, and a function that judges a change of the tree."""
    tree, tests, scratch = tmp_path / "tree", tmp_path / "tests", tmp_path / "scratch"
    for folder in (tree, tests, scratch):
        folder.mkdir()
    for name, text in [("core.py", CORE), ("test_core.py", TESTS), ("test_broken.py", BROKEN)]:
        (tree / name).write_text(text)
    git(tree, "init", "-q", "-b", "main")
    (tree / ".git/info/exclude").write_text("__pycache__/\n")
    git(tree, "add", "-A")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "tree")
    for name in ("judge.py", "refactoring/refactoring.py"):
        (tests / Path(name).name).write_text((EXPORT / name).read_text())
    pattern = {"only": [], "but": []}
    task = {
        "instance_id": "a__b.1-2", "workdir": str(tree), "scratch": str(scratch), "user": None, "variables": {}, "options": [],
        "ignored": ["dist"], "tests": [], "seconds": 120, "p_min": 2, "f_max": 1,
        "must_pass": ["test_core.py::test_one", "test_core.py::test_two"],
        "patterns": [
            {"id": "new", "side": "additive", "kind": "ident", "name": "new_name", **pattern},
            {"id": "old", "side": "reductive", "kind": "def", "name": "old_name", **pattern},
            {"id": "never", "side": "additive", "kind": "def", "name": "caller", **pattern},
        ],
    }
    (tests / "task.json").write_text(json.dumps(task))

    def judged(change, patch=None):
        git(tree, "reset", "-q", "--hard")
        git(tree, "clean", "-q", "-f", "-d", "-x")
        change(tree)
        git(tree, "add", "-A", "-f")
        place = tmp_path / "prediction.diff"
        words = ["git", "-C", str(tree), "diff", "--cached", "--binary"]
        own = subprocess.run(words, capture_output=True, check=True).stdout
        place.write_bytes(own if patch is None else patch.encode())
        out = tmp_path / "out"
        words = [sys.executable, "-I", str(tests / "refactoring.py"), "--log", str(tests / "task.json"), str(place), str(out)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        reward = json.loads((out / "reward.json").read_text())
        return reward, json.loads((out / "reward-details.json").read_text()), done.stdout

    return judged


def replaced(tree, before, after, name="core.py"):
    text = (tree / name).read_text()
    assert before in text
    (tree / name).write_text(text.replace(before, after))


def test_the_golden_patch_is_one_and_the_empty_one_is_nothing(court):
    reward, details, said = court(lambda tree: replaced(tree, "old_name", "new_name"))
    assert reward == {"reward": 1.0, "pass": 1, "pass_set": 1, "ifr": 1.0}
    assert details["left_out"] == ["never"], "what matches the base is no additive pattern"
    assert details["counts"] == {"passed": 2, "failed": 1, "skipped": 0, "total": 3}
    assert "PASSED test_core.py::test_one" in said
    reward, _, _ = court(lambda tree: None)
    assert reward == {"reward": 0.0, "pass": 1, "pass_set": 1, "ifr": 0.0}


def test_a_part_is_a_part_and_a_broken_test_is_nothing(court):
    def alias(tree):
        (tree / "core.py").write_text(CORE + "\n\nnew_name = old_name\n")

    assert court(alias)[0] == {"reward": 0.5, "pass": 1, "pass_set": 1, "ifr": 0.5}

    def breaks(tree):
        replaced(tree, "old_name", "new_name")
        replaced(tree, "a + 1", "a + 2")

    reward, details, said = court(breaks)
    assert reward == {"reward": 0.0, "pass": 0, "pass_set": 0, "ifr": 1.0}
    assert details["class"] == "regression" and "FAILED test_core.py::test_two" in said

    def deletes(tree):
        replaced(tree, "old_name", "new_name")
        replaced(tree, TESTS[TESTS.index("\n\ndef test_two") :], "", "test_core.py")

    assert court(deletes)[0]["pass"] == 0


def test_a_repaired_test_pays_for_a_broken_one_in_the_bounds_and_not_by_name(court):
    def pays(tree):
        replaced(tree, "old_name", "new_name")
        replaced(tree, "assert False", "assert True", "test_broken.py")
        replaced(tree, "== 3", "== 4", "test_core.py")

    reward, _, _ = court(pays)
    assert (reward["pass"], reward["pass_set"], reward["reward"]) == (1, 0, 1.0)


def test_what_cannot_be_applied_or_collected_is_nothing(court):
    bad = "diff --git a/core.py b/core.py\n--- a/core.py\n+++ b/core.py\n@@ -1 +1 @@\n-no such line\n+x\n"
    reward, details, _ = court(lambda tree: None, bad)
    assert reward["reward"] == 0 and details["class"] == "patch-failed"
    link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
    assert court(lambda tree: None, link)[1]["class"] == "patch-failed"
    outside = "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n"
    assert court(lambda tree: None, outside)[1]["class"] == "patch-failed"

    def stops(tree):
        (tree / "conftest.py").write_text("import os\nos._exit(0)\n")

    reward, details, _ = court(stops)
    assert (reward["reward"], details["class"]) == (0.0, "suite-crashes")

    def uncollectable(tree):
        replaced(tree, "old_name", "new_name")
        (tree / "test_core.py").write_text("import nothing_of_the_kind\n")

    reward, details, _ = court(uncollectable)
    assert (reward["pass"], details["counts"]["failed"]) == (0, 2)


def test_code_that_is_put_aside_or_suppressed_is_still_there(court):
    def aside(tree):
        (tree / "dist").mkdir()
        (tree / "dist/core.py").write_text(CORE)
        replaced(tree, "old_name", "new_name")

    assert court(aside)[1]["satisfied"] == {"new": True, "old": False}

    def latin(tree):
        (tree / "core.py").write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9 new_name\n" + CORE.encode())

    assert court(latin)[1]["satisfied"] == {"new": False, "old": False}, "a comment satisfies nothing"


def test_what_collects_needs_nothing_of_its_folder(tmp_path):
    # Another user than the judge's cannot list the folder, so that no module is found in it.
    (tmp_path / "alone").mkdir()
    script = tmp_path / "alone/refactoring.py"
    script.write_text((EXPORT / "refactoring/refactoring.py").read_text())
    (tmp_path / "test_a.py").write_text("def test_one():\n    pass\n")
    words = [sys.executable, "-s", str(script), "--collect", "test_a.py"]
    done = subprocess.run(words, cwd=tmp_path, input="nonce\n", capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == ["nonce", {"test_a.py": ["test_a.py::test_one"]}, [], []], done.stderr
