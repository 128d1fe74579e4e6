import os
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(path, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(path)}
    # A copy of the interpreter has no program beside it.
    command = [sys.executable, "-c", "import sys; sys.executable = sys.argv[1]; sys.argv[1:2] = []\n"
               "import runpy, sysconfig; sysconfig.get_path = lambda name: sys.executable\n"
               "runpy.run_module('gistmill', run_name='__main__')", str(path / "python"), *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


def test_the_module_is_the_program(tmp_path):
    program = tmp_path / "gistmill"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    ended = run(tmp_path, "build", "a b")
    assert (ended.returncode, ended.stdout) == (7, "build\na b\n"), ended.stderr


def test_without_a_program_it_says_so(tmp_path):
    ended = run(tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("gistmill: gistmill is not on the path"), ended.stderr
    assert "Traceback" not in ended.stderr
