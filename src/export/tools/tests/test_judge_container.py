"""The judge of an export in a container in which somebody worked: what was left is ended, and the container itself goes on."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPORT = Path(__file__).parents[2]
sys.path.insert(0, str(EXPORT))
import judge  # noqa: E402

# As the first process of a container that keeps it open with a child, in the tree; what is left there comes later.
SCRIPT = """
cd "$1/tree"
sleep 60 & keeper=$!
sleep 1
sleep 60 & left=$!
cd /
"$1/venv/bin/python" -I -c 'import sys
sys.path.insert(0, sys.argv[1])
import judge
judge.AT_ONCE = 0.5
judge.clean_container(judge.Path(sys.argv[2]))' "$2" "$1/tree" || exit 9
kill -0 $keeper && echo keeper
wait $left
echo left $?
"""


def test_what_keeps_the_container_open_is_spared_and_what_was_left_is_not(tmp_path):
    for folder in ("tree", "venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    # With no packages beside it that could be tidied.
    (tmp_path / "venv/bin/python").symlink_to(os.path.realpath(sys.executable))
    command = ["unshare", "-Urpf", "--mount-proc", "sh", "-c", SCRIPT, "sh", tmp_path, EXPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["keeper", "left 137"]), done.stderr


@pytest.mark.parametrize("name, lines, stays", [
    ("tree.pth", ["{tree}/src"], True),
    # What `setup.py develop` writes.
    ("easy-install.pth", ["{tree}", "{tree}/src", ""], True),
    ("easy-install.pth", ["{tree}", "/tmp"], False),
    ("easy-install.pth", ["{tree}/src/a.egg-info"], False),
    ("easy-install.pth", ["{tree}/src/file"], False),
    ("easy-install.pth", ["{tree}", "import os"], False),
    ("easy-install.pth", ["{tree}/../elsewhere"], False),
    ("other.pth", ["{tree}"], False),
    ("tree.pth", [""], False),
])
def test_only_what_puts_the_tree_on_the_path_stays(tmp_path, name, lines, stays):
    (tmp_path / "tree/src/a.egg-info").mkdir(parents=True)
    (tmp_path / "tree/src/file").write_text("an archive")
    place = tmp_path / name
    place.write_text("\n".join(lines).format(tree=tmp_path / "tree"))
    assert judge.leads_into(place, tmp_path / "tree") is stays
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    assert not judge.leads_into(place, tmp_path / "tree")


def test_a_reset_tree_keeps_the_version_of_its_project_and_no_entry_point(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    git("init", "-q", "-b", "main")
    write(".git/info/exclude", "*.egg-info/\n")
    write("a.py", "1")
    write("kept.egg-info/entry_points.txt", "of the commit")
    git("add", "-A", "-f")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "tree")
    write("a.py", "2")
    write("b.py", "3")
    write("kept.egg-info/entry_points.txt", "of somebody")
    about = "Metadata-Version: 2.1\nName: own\nVersion: 3\n"
    for name in ("PKG-INFO", "entry_points.txt", "more/PKG-INFO"):
        write(f"src/own.egg-info/{name}", f"PK\n{about}Summary: more\n")
    write("nested/code.py", "of somebody")
    subprocess.run(["git", "-C", str(tmp_path / "nested"), "init", "-q"], check=True)
    (tmp_path / "linked.egg-info").symlink_to(tmp_path / "src")
    judge.reset(tmp_path)
    left = {str(one.relative_to(tmp_path)): one.read_text() for one in tmp_path.rglob("*") if one.is_file() and ".git/" not in str(one)}
    assert left == {"a.py": "1", "kept.egg-info/entry_points.txt": "of the commit", "src/own.egg-info/PKG-INFO": about}
    assert not (tmp_path / "linked.egg-info").exists()


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "link", "large", "bytes"])
def test_what_was_handed_in_and_is_no_file_is_its_authors_fault(tmp_path, kind):
    place = tmp_path / "concise.py"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        (tmp_path / "other").write_text("x = 1\n")
        place.symlink_to("other")
    elif kind == "large":
        with place.open("wb") as file:
            file.truncate(judge.LARGEST_FILE + 1)
    elif kind == "bytes":
        place.write_bytes(b"\xff\x00")
    text, why = judge.handed_in(place)
    assert text is None and "concise.py" in why


def test_no_name_of_the_judge_is_defined_twice():
    for file in EXPORT.glob("*.py"):
        names = [one.name for one in ast.parse(file.read_text()).body if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        assert len(names) == len(set(names)), file


def test_a_module_binds_what_python_binds():
    """gistmill itself is held against the same table."""
    for text, names in json.loads((Path(__file__).parent / "bound_names.json").read_text()):
        if "match" not in text or sys.version_info >= (3, 10):
            assert sorted(judge.bound_names(ast.parse(text))) == names, text


@pytest.mark.parametrize("left", ["folder", "link", "file"])
def test_what_an_agent_left_under_the_names_of_a_reward_is_replaced(tmp_path, left):
    (tmp_path / "theirs").write_text("0")
    for name in (".reward.json", "reward.json"):
        place = tmp_path / name
        if left == "folder":
            (place / "in").mkdir(parents=True)
        elif left == "link":
            place.symlink_to("theirs")
        else:
            place.write_text("1")
    judge.write(tmp_path, "reward.json", {"reward": 0})
    assert json.loads((tmp_path / "reward.json").read_text()) == {"reward": 0}
    assert not (tmp_path / "reward.json").is_symlink() and not (tmp_path / ".reward.json").exists()
    assert (tmp_path / "theirs").read_text() == "0"


def test_names_of_variants_are_those_of_what_was_handed_in():
    """Its own test has `total`, and `tiny` is only a part of the module: so it is in the test that takes its place, and in variants."""
    file = "class tiny:\n    joined = 1\n\n\ndef total():\n    return 1\n\n\ndef test_a():\n    assert total() == 1\n"
    parts = [None, "def test_a():\n", None, "    assert ", [["tiny", "tiny.total"], ["total", "total"], [None, "total"]], "() == {}\n"]
    text = lambda value: [one.replace("{}", value) if isinstance(one, str) else one for one in parts]
    variant = {"text": text("2"), "kind": "other-expected", "cases": {}}
    runs = judge.runs_of(file, [{"name": "test_a", "defined_as": "test_a", "text": text("1"), "variants": [variant]}])
    assert [("assert total() == 2" in run, kind) for run, kind, _ in runs] == [(True, "other-expected"), (False, None)]
    assert "assert total() == 1" in runs[-1][0]
    # One other use of the root does not decide about all names.
    both = file.replace("assert total() == 1", "assert tiny.joined == total() == 1")
    assert "assert total() == 1" in judge.with_test(both, "test_a", text("1"))
    # What the test binds itself is no name of the file.
    own = file.replace("assert total() == 1", "total = tiny.total\n    assert total() == 1")
    assert "assert tiny.total() == 1" in judge.with_test(own, "test_a", text("1"))


def test_a_name_that_the_submitted_test_uses_comes_before_one_that_the_file_binds():
    parts = [None, "def test_a():\n", None, "    assert ", [["attr", "attr.s"], ["s", "s"]], "()\n"]
    file = "def s():\n    return 1\n\n\nattr = print\n\n\ndef test_a():\n    assert {}()\n"
    assert "assert s()" in judge.with_test(file.format("s"), "test_a", parts)
    assert "assert attr.s()" in judge.with_test(file.format("attr.s"), "test_a", parts)
    # A test that names neither leaves it to what is bound.
    assert "assert attr.s()" in judge.with_test(file.format("other"), "test_a", parts)
