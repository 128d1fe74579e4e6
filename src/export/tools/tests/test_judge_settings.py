"""Settings of a repository that name what the judge took out of its tree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

JUDGE = Path(__file__).parents[2] / "judge.py"
# The second is one of years past, where it is at hand.
PYTHONS = [sys.executable, os.environ.get("GISTMILL_TEST_OLD_PYTESTS")]
SETTINGS = """[pytest]
addopts = -p gone.plugin
filterwarnings =
    error
    ignore::gone.warnings.Loud
    ignore:said twice:here.warnings.Soft
    ignore::DeprecationWarning
"""
TESTS = """import warnings


def test_ignored():
    warnings.warn("old", DeprecationWarning)


def test_still_an_error():
    warnings.warn("new", UserWarning)
"""


@pytest.mark.parametrize("python", [pytest.param(one, marks=pytest.mark.skipif(not one, reason="names no Python")) for one in PYTHONS])
def test_what_was_taken_out_is_left_out_and_all_else_counts(tmp_path, python):
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "here").mkdir()
    (tmp_path / "here/warnings.py").write_text("class Soft(UserWarning):\n    pass\n")
    # The installed repository has a plugin, of which the code is gone.
    about = tmp_path / "site/gone-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gone\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[pytest11]\ngone = gone.other\n")
    words = [python, "-s", str(JUDGE), "--run", "test_it.py"]
    variables = {**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path / 'site'}"}
    done = subprocess.run(words, input="nonce\n", cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    nonce, code, seen = json.loads(done.stdout)
    assert (nonce, code) == ("nonce", 1), done.stderr
    assert {name: one[:2] for name, one in seen.items()} == {
        "test_it.py::test_ignored": ["passed", None],
        "test_it.py::test_still_an_error": ["failed", "builtins.UserWarning"],
    }
