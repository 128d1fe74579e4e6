"""Settings of a repository that name what the judge took out of its tree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
import judge  # noqa: E402

JUDGE = Path(__file__).parents[2] / "judge.py"
OLD = [one for one in os.environ.get("GISTMILL_TEST_OLD_PYTESTS", "").split(os.pathsep) if one]
SETTINGS = """[pytest]
addopts = -p gone.plugin
filterwarnings =
    error
    ignore::gone.warnings.Loud
    ignore:said twice:here.soft.Soft
    ignore::DeprecationWarning
"""
CONFTEST = """def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore:added")
"""
TESTS = """import warnings

from here.soft import Soft


def test_ignored():
    warnings.warn("old", DeprecationWarning)
    warnings.warn("said twice", Soft)
    warnings.warn("added by a plugin", UserWarning)


def test_still_an_error():
    warnings.warn("new", UserWarning)
"""


@pytest.mark.parametrize("python", [sys.executable, *OLD])
def test_what_was_taken_out_is_left_out_and_all_else_counts(tmp_path, python):
    tree, place = tmp_path / "tree", tmp_path / "place"
    place.mkdir()
    shutil.copyfile(JUDGE, place / "judge.py")
    (tree / "here").mkdir(parents=True)
    (tree / "here/soft.py").write_text("class Soft(UserWarning):\n    pass\n")
    for name, text in (("pytest.ini", SETTINGS), ("test_it.py", TESTS), ("conftest.py", CONFTEST)):
        (tree / name).write_text(text)
    # The installed repository has a plugin, of which the code is gone.
    about = tmp_path / "site/gone-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gone\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[pytest11]\ngone = gone.other\n")
    words = [python, "-s", str(place / "judge.py"), "--run", "test_it.py"]
    variables = {**os.environ, "PYTHONPATH": f"{tree}:{tmp_path / 'site'}"}

    def run():
        done = subprocess.run(words, input="nonce\n", cwd=tree, env=variables, capture_output=True, text=True, timeout=60)
        return done, json.loads(done.stdout) if done.returncode == 0 else (None, 4, {})

    # As long as nothing is said to be hidden, what is not there is missing.
    done, (_, code, seen) = run()
    assert code not in (0, 1) and not seen, done.stderr
    hidden = set().union(*map(judge.names_of, ("src/gone/__init__.py", "src/gone/plugin.py", "src/gone/warnings.py", "src/gone/other.py")))
    (place / "hidden.json").write_text(json.dumps(sorted(hidden)))
    done, (nonce, code, seen) = run()
    assert (nonce, code) == ("nonce", 1), done.stderr
    assert {name: one[:2] for name, one in seen.items()} == {
        "test_it.py::test_ignored": ["passed", None],
        "test_it.py::test_still_an_error": ["failed", "builtins.UserWarning"],
    }
