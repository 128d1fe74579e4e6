"""The script that compiles test files as pytest does, without the runner."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[3] / "environment" / "steps" / "rewrite.py"


def rewrite(tmp_path, files=("test_a.py",), **links):
    root, out = tmp_path / "root", tmp_path / "out"
    out.mkdir(exist_ok=True)
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("def test_a():\n    assert True\n")
    for name, target in links.items():
        os.symlink(target, root / name.replace("_", "."))
    site = pathlib.Path(pytest.__file__).parents[1]
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"root": str(root), "site": str(site), "files": list(files), "out": str(out)}))
    subprocess.run([sys.executable, "-I", "-S", str(SCRIPT), str(spec)], check=True, timeout=120)
    return [path.name for path in out.rglob("*.pyc")]


def test_settings_without_an_end_are_not_read(tmp_path):
    (made,) = rewrite(tmp_path, setup_cfg="/dev/zero", tox_ini="/dev/zero")
    assert made.startswith("test_a.") and "-pytest-" in made


def test_every_file_is_compiled_once_on_however_many_processors(tmp_path):
    files = ["tests/%d/test_%d.py" % (number % 3, number) for number in range(9)] + ["tests/conftest.py"]
    made = rewrite(tmp_path, files)
    assert sorted(name.split(".")[0] + ".py" for name in made) == sorted(os.path.basename(file) for file in files)


def test_a_file_that_does_not_compile_costs_no_other(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "conftest.py").write_text("def test_a(:\n")
    made = rewrite(tmp_path, ["test_a.py", "test_b.py", "test_c.py"])
    assert sorted(name.split(".")[0] for name in made) == ["test_a", "test_b", "test_c"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: nothing is shared")
def test_what_a_process_that_shares_the_work_cannot_write_fails_the_whole(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "b").write_text("no folder")  # the second file is another process's
    with pytest.raises(subprocess.CalledProcessError):
        rewrite(tmp_path, ["a/test_a.py", "b/test_b.py"])


def test_a_file_that_pytest_is_told_to_compile_in_another_way_is_left_to_it(tmp_path):
    told = tmp_path / "told.ini"
    told.write_text("[pytest]\nenable_assertion_pass_hook = true\n")
    assert rewrite(tmp_path, tox_ini=str(told)) == []
