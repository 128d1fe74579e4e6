"""Judges one file by what pytest says of its test, in a tree without the repository's Python code.

usage: judge.py TASK.json FILE FOLDER

TASK.json says which test is run and how each case must end. FOLDER gets reward.json (1 or 0, and the share of cases that end
as they must) and report.json. Nothing else is compared: output, imports and changes of the test itself go unseen here.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

WORST = {"passed": 0, "xpassed": 1, "xfailed": 2, "skipped": 3, "failed": 4, "error": 5}


class Outcomes:
    """What pytest reports of each case, over set-up, call and tear-down."""

    def __init__(self):
        self.seen = {}

    def pytest_runtest_logreport(self, report):
        outcome = self.outcome(report)
        known = self.seen.get(report.nodeid, "passed")
        self.seen[report.nodeid] = max(known, outcome, key=WORST.__getitem__)

    @staticmethod
    def outcome(report):
        if report.failed:
            return "failed" if report.when == "call" else "error"
        if hasattr(report, "wasxfail"):
            return "xfailed" if report.skipped else "xpassed"
        return "skipped" if report.skipped else "passed"


def run(place, tests):
    """In a process of its own: runs tests as `python -m pytest` would."""
    import pytest

    sys.path[0] = os.getcwd()
    outcomes = Outcomes()
    code = pytest.main(["-p", "no:cacheprovider", *tests], plugins=[outcomes])
    Path(place).write_text(json.dumps(outcomes.seen))
    sys.exit(int(code))


def lay(tree, before, folder):
    """Lays files over the tree: true is a file to put, false one to take away."""
    for path, is_put in before.items():
        target = tree / path
        if is_put:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, target)
        else:
            target.unlink(missing_ok=True)


def hide(tree, endings):
    """Takes the repository's code out of its tree."""
    for folder, folders, names in os.walk(tree):
        if ".git" in folders:
            folders.remove(".git")
        for name in names:
            if name.rpartition(".")[2].lower() in endings:
                os.unlink(os.path.join(folder, name))


def judge(task, file):
    tree = Path(task["workdir"])
    place = {"<root>": str(tree), "<venv>": sys.prefix}
    expected = {}
    for name, outcome in task["outcomes"].items():
        for mark, path in place.items():
            name = name.replace(mark, path)
        expected[name] = outcome
    report = {"instance_id": task["instance_id"], "expected": expected, "seen": {}, "output": ""}
    if not file.is_file():
        return {**report, "output": f"there is no {file.name}"}
    text = file.read_bytes()
    hide(tree, set(task["hidden"]))
    lay(tree, task["before"], Path(__file__).parent / "before")
    target = tree / task["submission"]
    if target.is_symlink() or target.is_dir():
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
    target.write_bytes(text)
    environment = {**os.environ, **task["variables"], "PYTEST_ADDOPTS": " ".join(task["options"])}
    for words in task["commands"]:
        place = Path(task["scratch"]) / "outcomes.json"
        place.unlink(missing_ok=True)
        # `python -m pytest …`: what is behind it is run here, where its outcomes can be seen.
        command = [sys.executable, __file__, "--run", str(place), *words[3:]]
        try:
            ended = subprocess.run(
                command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=task["seconds"]
            )
            report["output"] += (ended.stdout + ended.stderr).decode(errors="replace")[-20_000:]
        except subprocess.TimeoutExpired:
            report["output"] += f"not done after {task['seconds']} seconds"
        if place.is_file():
            report["seen"].update(json.loads(place.read_text()))
    return report


def main(task, file, folder):
    task = json.loads(Path(task).read_text())
    report = judge(task, Path(file))
    expected, seen = report["expected"], report["seen"]
    right = sum(seen.get(name) == outcome for name, outcome in expected.items())
    whole = int(right == len(expected) and set(seen) == set(expected))
    reward = whole if task["reward"] == "all" else right / len(expected)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reward.json").write_text(json.dumps({"reward": reward, "cases_right": right / len(expected)}))
    (folder / "report.json").write_text(json.dumps({**report, "reward": reward}, indent=1))
    print(f"{report['instance_id']}: {right} of {len(expected)} cases end as they must, reward {reward}")


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--run":
        run(sys.argv[2], sys.argv[3:])
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
