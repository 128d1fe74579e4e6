"""The judge of an export in a container in which somebody worked: what was left is ended, and the container itself goes on."""

import os
import subprocess
import sys
from pathlib import Path

EXPORT = Path(__file__).parents[2]
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
