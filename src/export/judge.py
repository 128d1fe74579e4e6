"""Judges one file by what pytest says of its test, in a tree without the repository's Python code.

usage: judge.py TASK.json FILE FOLDER
       judge.py --log TASK.json FILE FOLDER

TASK.json says which test is run, what it looks like, and how each case must end. FOLDER gets reward.json (one number) and
reward-details.json; --log prints a line for each case as pytest does, once nothing of the file runs any more. What the file does
wrong is 0. What the machine does wrong is exit code 3, and no reward.json.

The file runs as a user of its own, where the judge is root. Its test must be the original one, names of modules aside. It is run
as it is and three times with an exception at the start of the test, in an order that nobody can know: with one it must not pass.
"""

import ast
import builtins
import json
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

LARGEST_FILE = 8 << 20
LARGEST_ANSWER = 1 << 20
WORST = {"passed": 0, "xpassed": 1, "xfailed": 2, "skipped": 3, "failed": 4, "error": 5}
EVERYBODYS = frozenset(dir(builtins))
RAISED = ["NameError", "AttributeError", "TypeError", "AssertionError", "KeyError", "ImportError"]


class MachineFault(Exception):
    """Nothing that the file did."""


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


def definition(module, name):
    """The function `Class::function` of a module, defined last; none where there is none."""
    body, parts = module.body, name.split("::")
    for part in parts[:-1]:
        body = next((one.body for one in reversed(body) if isinstance(one, ast.ClassDef) and one.name == part), [])
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return next((one for one in reversed(body) if isinstance(one, functions) and one.name == parts[-1]), None)


class Plain(ast.NodeTransformer):
    """A test without what differs between a repository and one file: imports, the modules that names are reached by, docstrings, and
    what those names are that are neither the test's nor everybody's: they are numbered as they come."""

    def __init__(self, test):
        self.numbers = {}
        arguments = [one.arg for one in ast.walk(test) if isinstance(one, ast.arg)]
        stored = [one.id for one in ast.walk(test) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)]
        self.own = {*arguments, *stored}

    def visit_Attribute(self, node):
        root, path = node, []
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.own:
            return self.visit_Name(ast.Name(id=".".join([root.id, *reversed(path)]), ctx=ast.Load()))
        return self.generic_visit(node)

    def visit_Name(self, node):
        if node.id in self.own or node.id in EVERYBODYS:
            return node
        return ast.Name(id=f"name {self.numbers.setdefault(node.id, len(self.numbers))}", ctx=node.ctx)

    def visit_Expr(self, node):
        value = node.value
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_Import(self, _):
        return None

    visit_ImportFrom = visit_Import


def plain(test):
    test = Plain(test).visit(test)
    return ast.dump(test)


def is_original(text, test):
    """Whether the file's test is the one of the repository. A test whose source is not known is not compared."""
    if test["source"] is None:
        return None
    found = definition(ast.parse(text), test["name"])
    if found is None:
        return f"it does not define {test['name']}"
    original = ast.parse(textwrap.dedent(test["source"])).body[0]
    try:
        same = plain(found) == plain(original)
    except RecursionError:
        return f"its {test['name']} is nested too deep"
    return None if same else f"its {test['name']} is not the original test"


def with_exception(text, name, exception):
    """The file with an exception at the start of a test."""
    first = definition(ast.parse(text), name).body[0]
    line = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", []))])
    lines = text.encode().splitlines(keepends=True)
    before = lines[line - 1][: first.col_offset]
    statement = f"raise {exception}('not there')".encode()
    if before.strip():
        lines[line - 1] = before + statement + b"; " + lines[line - 1][first.col_offset :]
    else:
        lines.insert(line - 1, before + statement + b"\n")
    return b"".join(lines).decode()


def hide(tree, endings):
    """Takes the repository's code out of its tree, and the history that has it."""
    shutil.rmtree(tree / ".git", ignore_errors=True)
    for folder, _, names in os.walk(tree):
        for name in names:
            if name.rpartition(".")[2].lower() in endings:
                os.unlink(os.path.join(folder, name))


def lay(tree, before, folder):
    """Lays files over the tree: true is a file to put, false one to take away."""
    for path, is_put in before.items():
        target = tree / path
        if is_put:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, target)
        elif target.is_file() or target.is_symlink():
            target.unlink()


def handed_in(file):
    """The text of a regular file that is not too large; the reason where there is none."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None, f"there is no {file.name}"
    with os.fdopen(handle, "rb") as opened:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
            return None, f"{file.name} is not a file of at most {LARGEST_FILE} bytes"
        text = opened.read()
    try:
        ast.parse(text)
        return text.decode(), None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return None, f"{file.name} cannot be read: {error}"


class Court:
    """Where the file runs: a tree, a user and a scratch folder."""

    def __init__(self, task):
        self.task, self.tree = task, Path(task["workdir"])
        self.user = task["user"] if os.geteuid() == 0 else None
        self.scratch = Path(tempfile.mkdtemp(dir=task["scratch"]))
        shutil.copyfile(__file__, self.scratch / "judge.py")
        self.give(self.scratch)

    def give(self, place):
        if self.user is None:
            return
        for folder, folders, names in os.walk(place):
            for name in [".", *folders, *names]:
                os.chown(os.path.join(folder, name), self.user, self.user, follow_symlinks=False)

    def enter(self):
        """Becomes the user that the file runs as."""
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.user is not None:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)

    def end(self, process):
        """Ends all that the file has started."""
        for _ in range(200):
            others = self.processes(process)
            if not others:
                return
            for one in others:
                try:
                    os.kill(one, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        raise MachineFault("processes of the file could not be ended")

    def processes(self, leader):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                is_its = os.stat(f"/proc/{name}").st_uid == self.user if self.user is not None else int(fields[3]) == leader
            except (OSError, IndexError, ValueError):
                continue
            if is_its and fields[0] not in "ZX" and int(name) != os.getpid():
                found.append(int(name))
        return found

    def spawn(self, arguments, seconds, output):
        task = self.task
        environment = {**os.environ, **task["variables"], "PYTEST_ADDOPTS": " ".join(task["options"])}
        environment.update(HOME=str(self.scratch), TMPDIR=str(self.scratch))
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=self.enter,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            self.end(process.pid)

    def outcomes(self, text):
        """What the cases of a text show, and what it printed."""
        target, seen, said = self.tree / self.task["submission"], {}, b""
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        elif target.is_symlink() or target.exists():
            target.unlink()
        target.write_text(text)
        self.give(target.parent if self.user is None else self.tree)
        for words in self.task["commands"]:
            place = self.scratch / "outcomes.json"
            if place.is_symlink() or place.exists():
                place.unlink() if not place.is_dir() or place.is_symlink() else shutil.rmtree(place)
            with tempfile.TemporaryFile() as output:
                # `python -m pytest …`: what is behind it is run by this script, where its outcomes can be seen.
                arguments = [str(self.scratch / "judge.py"), "--run", str(place), *words[3:]]
                if self.spawn(arguments, self.task["seconds"], output) is None:
                    said += f"not done after {self.task['seconds']} seconds\n".encode()
                output.seek(max(0, output.seek(0, os.SEEK_END) - 20_000))
                said += output.read()
            seen.update(self.answer(place))
        return seen, said.decode(errors="replace")

    def answer(self, place):
        """Outcomes by case; nothing where they are not what the script writes."""
        try:
            handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as opened:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    return {}
                seen = json.loads(opened.read(LARGEST_ANSWER))
        except (OSError, ValueError, RecursionError):
            return {}
        is_right = isinstance(seen, dict) and all(isinstance(one, str) and one in WORST for one in seen.values())
        return seen if is_right else {}


def judge(task, file):
    tree = Path(task["workdir"])
    if not tree.is_dir():
        raise MachineFault(f"there is no tree at {tree}")
    place = {"<root>": str(tree), "<venv>": sys.prefix}
    expected = {}
    for name, outcome in task["outcomes"].items():
        for mark, path in place.items():
            name = name.replace(mark, path)
        expected[name] = outcome
    report = {"instance_id": task["instance_id"], "expected": expected, "seen": {}, "output": "", "why": None}
    text, why = handed_in(file)
    for test in task["tests"] if why is None else []:
        why = why or is_original(text, test)
    if why is not None:
        return {**report, "why": why}
    hide(tree, set(task["hidden"]))
    lay(tree, task["before"], Path(__file__).parent / "before")
    court = Court(task)
    with tempfile.TemporaryFile() as output:
        if court.spawn(["-c", "import pytest"], 120, output) != 0:
            raise MachineFault("pytest cannot be started here")
    chance = random.SystemRandom()
    defined = [test["name"] for test in task["tests"] if definition(ast.parse(text), test["name"])]
    runs = [(name, raised) for name in defined for raised in chance.sample(RAISED, 3)] + [None]
    chance.shuffle(runs)
    forgiven = []
    for one in runs:
        if one is None:
            report["seen"], report["output"] = court.outcomes(text)
            continue
        seen, _ = court.outcomes(with_exception(text, *one))
        forgiven += [f"{name} passes although its test raises {one[1]}" for name in seen if seen[name] == "passed"]
    shutil.rmtree(court.scratch, ignore_errors=True)
    return {**report, "why": "; ".join(forgiven[:3]) or None}


def write(folder, name, value):
    aside = folder / f".{name}"
    aside.write_text(json.dumps(value, indent=1))
    aside.replace(folder / name)


def main(task_file, file, folder, log):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("reward.json", "reward.txt", "reward-details.json"):
        if (folder / name).is_symlink() or (folder / name).exists():
            (folder / name).unlink()
    if os.geteuid() == 0:
        os.chmod(folder, 0o700)
        os.chmod(task_file, 0o600)
    task = json.loads(Path(task_file).read_text())
    report = judge(task, Path(file))
    expected, seen, why = report["expected"], report["seen"], report["why"]
    right = 0 if why else sum(seen.get(name) == outcome for name, outcome in expected.items())
    whole = int(right == len(expected) and set(seen) == set(expected))
    reward = whole if task["reward"] == "all" else right / len(expected)
    write(folder, "reward-details.json", {**report, "reward": reward, "cases_right": right / len(expected)})
    write(folder, "reward.json", {"reward": reward})
    print(f"{report['instance_id']}: {right} of {len(expected)} cases end as they must, reward {reward}; {why or 'no objection'}")
    if log:
        for name, outcome in expected.items():
            ends = why is None and seen.get(name) == outcome and set(seen) == set(expected)
            print("PASSED" if ends and outcome == "passed" else "FAILED", name)


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--run":
        run(sys.argv[2], sys.argv[3:])
    logs = sys.argv[1:2] == ["--log"]
    if len(sys.argv) != 4 + logs:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1 + logs :], logs)
    except (MachineFault, OSError, KeyError) as fault:
        print(f"the machine's fault, nothing is judged: {fault!r}", file=sys.stderr)
        sys.exit(3)
