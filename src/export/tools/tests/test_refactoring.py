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
    for name in ("judge.py", "refactoring/features.py", "refactoring/refactoring.py"):
        (tests / Path(name).name).write_text((EXPORT / name).read_text())
    pattern = {"only": [], "but": []}
    task = {
        "instance_id": "a__b.1-2", "workdir": str(tree), "scratch": str(scratch), "user": None, "variables": {}, "options": [],
        "ignored": ["dist"], "tests": [], "scripts": {}, "seconds": 120, "p_min": 2, "f_max": 1,
        "must_pass": ["test_core.py::test_one", "test_core.py::test_two"],
        "patterns": [
            {"id": "new", "side": "additive", "kind": "ident", "name": "new_name", **pattern},
            {"id": "old", "side": "reductive", "kind": "def", "name": "old_name", **pattern},
            {"id": "never", "side": "additive", "kind": "def", "name": "caller", **pattern},
        ],
    }
    (tests / "task.json").write_text(json.dumps(task))

    def judged(change, patch=None, left=None, code=0, seconds=120):
        git(tree, "reset", "-q", "--hard")
        git(tree, "clean", "-q", "-f", "-d", "-x")
        change(tree)
        git(tree, "add", "-A", "-f")
        place = tmp_path / "prediction.diff"
        words = ["git", "-C", str(tree), "diff", "--cached", "--binary"]
        own = subprocess.run(words, capture_output=True, check=True).stdout
        place.write_bytes(own if patch is None else patch.encode())
        if left is not None:
            git(tree, "reset", "-q", "--hard")
            left(tree)
        (tests / "task.json").write_text(json.dumps({**task, "seconds": seconds}))
        out = tmp_path / "out"
        words = [sys.executable, "-I", str(tests / "refactoring.py"), "--log", str(tests / "task.json"), str(place), str(out)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        if code:
            return list(out.glob("reward*")), done.stderr
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


def test_a_file_that_hides_what_it_has_satisfies_no_reductive_pattern(court):
    kept = CORE.replace("def old_name", "def +AG8-ld_name").replace("return old_name", "return +AG8-ld_name")

    def put(data, name="core.py"):
        def change(tree):
            replaced(tree, "old_name", "new_name")
            (tree / name).write_bytes(data)

        return change

    _, details, _ = court(put(b"# coding: utf-7\n" + kept.encode()))
    assert details["satisfied"]["old"] is False and "utf_7" in details["unread"]["core.py"].replace("-", "_")
    # A carriage return ends a line for Python too.
    assert court(put(b"\r# coding: utf-7\r\n" + kept.encode()))[1]["satisfied"]["old"] is False
    wide = CORE.replace("old_name", "\uff4fld_name").encode()
    assert court(put(wide))[1]["satisfied"] == {"new": False, "old": False}
    _, details, _ = court(put(CORE.encode() + b"\n)\n", "other.py"))
    assert details["satisfied"] == {"new": True, "old": False} and "SyntaxError" in details["unread"]["other.py"]
    marked = CORE.replace("old_name", "new_name").encode()
    reward, details, _ = court(put(b"\xef\xbb\xbf" + marked))
    assert reward["reward"] == 1 and details["unread"] == {}
    long = b"x = " + b" + ".join([b"1"] * 1000) + b"\n"
    assert court(put(long + CORE.encode()))[1]["satisfied"] == {"new": False, "old": False}
    assert court(put(long + marked))[0]["reward"] == 1


def test_links_caches_and_patches_that_inflate_are_refused(court):
    def link(tree):
        (tree / "l").symlink_to("core.py")
        git(tree, "add", "l")
        git(tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--amend", "-m", "tree")
        (tree / "l").unlink()
        (tree / "l").symlink_to("/etc/passwd")

    assert "changes a link" in court(link)[1]["why"]
    moved = "diff --git a/l b/m\nsimilarity index 100%\nrename from l\nrename to m\n"
    assert "changes a link" in court(lambda tree: None, moved)[1]["why"]
    assert "without a source" in court(lambda tree: (tree / "a.pyc").write_bytes(b"x"))[1]["why"]
    large = "diff --git a/b b/b\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 999999999999\nzc\n\n"
    assert "binary files of more than" in court(lambda tree: None, large)[1]["why"]


def test_what_could_not_be_taken_is_not_judged_and_no_time_is_said(court):
    rewards, said = court(lambda tree: None, "gistmill: git could not take what changed\n", code=3)
    assert rewards == [] and "could not be taken" in said
    _, details, _ = court(lambda tree: (tree / "test_core.py").write_text("import time\ntime.sleep(60)\n"), seconds=3)
    assert details["why"].endswith("not all could run in 3 s") and details["pass"] == 0


def test_what_no_patch_brings_helps_nobody(court, tmp_path):
    tree = tmp_path / "tree"
    with (tree / ".git/info/exclude").open("a") as opened:
        opened.write("left/\n*.pyc\n.own/\n")

    def leaves(name, text):
        def left(tree):
            (tree / name).parent.mkdir(exist_ok=True)
            (tree / name).write_text(text)

        return left

    def renames(tree):
        replaced(tree, "old_name", "renamed")

    _, details, _ = court(renames, left=leaves("left/a.py", "new_name = 1\n"))
    assert (details["satisfied"], details["left_out"]) == ({"new": False, "old": True}, ["never"])
    assert court(renames, left=leaves("left/b.py", CORE))[1]["satisfied"]["old"] is False
    court(renames, left=leaves("left/c.pyc", "x"))
    assert not (tree / "left/c.pyc").exists()

    def environment(tree):
        leaves(".own/core.py", CORE)(tree)
        (tree / ".own/pyvenv.cfg").write_text("")

    assert court(renames, left=environment)[1]["satisfied"]["old"] is True


def test_an_answer_of_another_shape_is_nothing(tmp_path):
    (tmp_path / "run.py").write_text(
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom refactoring import read_collected\n"
        "deep = '[' * 100_000\nwrong = [deep, '3', '[]', '[\"n\", {\"a\": 1}, [], []]', '[\"n\", {\"a\": [[]]}, [], []]', '[\"n\", {}, 1, []]']\n"
        "assert [read_collected(one, 'n') for one in wrong] == [None] * 6\n"
        "assert read_collected('[\"n\", {\"a\": [\"b\"]}, [], []]', 'n') == ({'a': ['b']}, [], [])\n"
    )
    for name in ("judge.py", "refactoring/features.py", "refactoring/refactoring.py"):
        (tmp_path / Path(name).name).write_text((EXPORT / name).read_text())
    done = subprocess.run([sys.executable, str(tmp_path / "run.py"), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_collects_needs_nothing_of_its_folder(tmp_path):
    # Another user than the judge's cannot list the folder, so that no module is found in it.
    (tmp_path / "alone").mkdir()
    script = tmp_path / "alone/refactoring.py"
    script.write_text((EXPORT / "refactoring/refactoring.py").read_text())
    (tmp_path / "test_a.py").write_text("def test_one():\n    pass\n")
    words = [sys.executable, "-s", str(script), "--collect", "test_a.py"]
    done = subprocess.run(words, cwd=tmp_path, input="nonce\n", capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == ["nonce", {"test_a.py": ["test_a.py::test_one"]}, [], []], done.stderr
