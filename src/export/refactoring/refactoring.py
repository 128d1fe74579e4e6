"""Judges a patch to a repository: its whole suite within bounds, and patterns of code that have to appear and to vanish.

usage: refactoring.py [--container] [--log] TASK.json PATCH FOLDER

FOLDER gets reward.json (reward = PASS x IFR, with pass, pass_set, ifr) and reward-details.json; --log prints a line for each case
that must pass. The patch is applied strictly to the tree's one commit. Each test file runs in a process of its own, as a user
of its own where the judge is root. What the patch does wrong is 0; what the machine does wrong is exit code 3, and no reward.json.
"""

import ast
import io
import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import warnings
from collections import Counter
from pathlib import Path

# What collects runs as another user, in a folder that it cannot list: no module is found there.
if sys.argv[1:2] != ["--collect"]:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import judge  # noqa: E402

LARGEST_PATCH = 64 << 20
LARGEST_SOURCE = 16 << 20
PYTHON = (".py", ".pyi")
TEXT = re.compile(r"[\w.:/-]{3,60}")


class TooLarge(Exception):
    """A file that is not looked through."""


# --- patterns: properties of single tokens, as gistmill mines them


class Reader(ast.NodeVisitor):
    """Counts the features of a module: (kind, name)."""

    def __init__(self, module):
        self.found = Counter()
        statements = [one for one in ast.walk(module) if isinstance(one, (ast.Import, ast.ImportFrom))]
        self.imported = {(name.asname or name.name).split(".")[0] for one in statements for name in one.names} | {"self", "cls"}

    def add(self, kind, name):
        if name:
            self.found[kind, name] += 1

    @staticmethod
    def last(node):
        return getattr(node, "attr", getattr(node, "id", None))

    def decorated(self, node):
        for one in node.decorator_list:
            self.add("decorator", self.last(one.func if isinstance(one, ast.Call) else one))

    def visit_FunctionDef(self, node):
        self.add("def", node.name)
        self.decorated(node)
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.add("class", node.name)
        self.decorated(node)
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == "object":
                self.add("shape", "class-with-object-base")
            self.add("base", self.last(base))
        self.generic_visit(node)

    def module(self, name):
        parts = name.split(".")
        for size in range(1, len(parts) + 1):
            self.add("module", ".".join(parts[:size]))

    def visit_Import(self, node):
        for one in node.names:
            self.module(one.name)

    def visit_ImportFrom(self, node):
        module = "." * node.level + (node.module or "")
        self.add("module", module) if node.level else self.module(module)
        for one in node.names:
            self.add("from", f"{module}:{one.name}")

    def visit_Call(self, node):
        name = self.last(node.func)
        self.add("call", name)
        if isinstance(node.func, ast.Name) and name == "super" and (node.args or node.keywords):
            self.add("shape", "super-with-arguments")
        owner = getattr(node.func, "value", None)
        if name == "format" and isinstance(owner, (ast.Constant, ast.JoinedStr)) and is_text(owner):
            self.add("shape", "format-call-on-text")
        for one in node.keywords:
            self.add("kwarg", one.arg)
            if one.arg and name:
                self.add("kwpair", f"{name}:{one.arg}")
        self.generic_visit(node)

    def visit_Attribute(self, node):
        self.add("attr", node.attr)
        if isinstance(node.value, ast.Name) and node.value.id in self.imported:
            self.add("dotted", f"{node.value.id}.{node.attr}")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Mod) and is_text(node.left):
            self.add("shape", "percent-format")
        self.generic_visit(node)

    def visit_JoinedStr(self, node):
        self.add("shape", "f-string")
        # Names in it are no tokens of their own before Python 3.12.
        if sys.version_info < (3, 12):
            for one in ast.walk(node):
                self.add("ident", getattr(one, "id", None) or getattr(one, "attr", None))
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, str) and TEXT.fullmatch(value) and re.search("[a-z]", value):
            self.add("text", value)


def is_text(node):
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def features(text):
    """What a file has; names alone where it is no Python that this interpreter reads."""
    try:
        module = ast.parse(text)
        reader = Reader(module)
        reader.visit(module)
        found = reader.found
        for one in module.body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found["place", one.name] += 1
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = Counter()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                found["ident", token.string] += 1
    except (SyntaxError, ValueError, tokenize.TokenError, IndentationError):
        pass
    return found


def is_ignored(path, task):
    return any(part in task["ignored"] for part in path.split("/"))


def scanned(tree, task):
    """Features of each Python file of a tree that is looked through, by its path."""
    found = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [one for one in folders if one != ".git" and one not in task["ignored"]]
        for name in names:
            place = os.path.join(folder, name)
            path = os.path.relpath(place, tree)
            if name.endswith(PYTHON) and not os.path.islink(place) and os.path.isfile(place):
                found[path] = read(place)
    return found


def read(place):
    if os.path.getsize(place) > LARGEST_SOURCE:
        raise TooLarge(f"{place} is larger than {LARGEST_SOURCE} bytes")
    data = Path(place).read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return features(text)


def matches(pattern, files):
    key = (pattern["kind"], pattern["name"])
    only, but = pattern["only"], pattern["but"]
    looked = (found for path, found in files.items() if path not in but and (not only or path in only))
    return sum(found[key] for found in looked)


# --- the tree and the patch


def git(tree, *words, **more):
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", f"safe.directory={tree}"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    plain.update(GIT_CONFIG_NOSYSTEM="1", HOME="/nonexistent")
    try:
        return subprocess.run(["git", "-C", str(tree), *safe, *words], env=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    except OSError as error:
        raise judge.MachineFault(f"git cannot be started: {error}") from error


def reset(tree):
    """Makes the files of the tree what its first commit has; what is ignored stays, as the image has built it there."""
    root = git(tree, "rev-list", "--max-parents=0", "HEAD").stdout.split()
    if not root:
        raise judge.MachineFault(f"{tree} has no commit")
    for words in (["reset", "-q", "--hard", root[-1].decode()], ["clean", "-q", "-f", "-d"]):
        done = git(tree, *words)
        if done.returncode:
            raise judge.MachineFault(done.stderr.decode(errors="replace")[-500:])


def apply(tree, patch):
    """Applies the patch; the reason where it cannot be. Gives the files that it puts."""
    if patch.is_symlink() or not patch.is_file() or patch.stat().st_size > LARGEST_PATCH:
        return f"there is no patch of at most {LARGEST_PATCH} bytes", []
    if not patch.read_bytes().strip():
        return None, []
    name = str(patch.resolve())
    summary = git(tree, "apply", "--summary", name)
    if summary.returncode or b"mode 120000" in summary.stdout or b"mode 160000" in summary.stdout:
        why = summary.stderr.decode(errors="replace").strip() or "it makes a link or a submodule"
        return f"the patch cannot be applied: {why[-500:]}", []
    done = git(tree, "apply", "--binary", "--whitespace=nowarn", name)
    if done.returncode:
        return f"the patch cannot be applied: {done.stderr.decode(errors='replace').strip()[-500:]}", []
    listed = git(tree, "apply", "--numstat", "-z", name).stdout.split(b"\0")
    return None, [one.split(b"\t")[-1].decode(errors="surrogateescape") for one in listed if one]


# --- the suite


class Collected:
    """What pytest collects: cases by file, and files that cannot be collected or skip themselves."""

    def __init__(self):
        self.files, self.broken, self.skipped = {}, [], []

    def pytest_collectreport(self, report):
        if report.failed and report.nodeid not in self.broken:
            self.broken.append(report.nodeid)
        elif report.skipped and report.nodeid not in self.skipped:
            self.skipped.append(report.nodeid)

    def pytest_collection_finish(self, session):
        for item in session.items:
            self.files.setdefault(item.nodeid.split("::")[0], []).append(item.nodeid)


def collect(tests):
    """In a process of its own: what would run."""
    nonce, report = sys.stdin.readline().strip(), os.dup(1)
    os.dup2(2, 1)
    import pytest

    sys.path[0] = os.getcwd()
    seen = Collected()
    pytest.main(["-p", "no:cacheprovider", "--collect-only", "-q", *tests], plugins=[seen])
    sys.stdout.flush()
    with os.fdopen(report, "w") as opened:
        opened.write(json.dumps([nonce, seen.files, seen.broken, seen.skipped]))
    os._exit(0)


class Suite:
    """A whole run: counts, and how each case ends."""

    def __init__(self, court, task):
        self.court, self.task = court, task
        self.counts = Counter(passed=0, failed=0, skipped=0, total=0)
        self.seen, self.why = {}, None
        self.until = time.monotonic() + task["seconds"]

    def spawn(self, script, words):
        left = self.until - time.monotonic()
        if left <= 0:
            return None, b"", ""
        nonce = os.urandom(16).hex()
        self.court.restore()
        with tempfile.TemporaryFile() as said:
            code, answer = self.court.spawn([str(script), *words], left, said, nonce.encode() + b"\n")
            said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
            return (nonce if code == 0 else None), answer, said.read().decode(errors="replace")

    def run(self):
        script = self.court.place / "refactoring.py"
        shutil.copyfile(__file__, script)
        script.chmod(0o644)
        nonce, answer, said = self.spawn(script, ["--collect", *self.task["tests"]])
        try:
            told, files, broken, skipped = json.loads(answer)
            is_right = nonce is not None and told == nonce and isinstance(files, dict)
        except (ValueError, TypeError):
            is_right = False
        if not is_right:
            self.why = f"nothing can be collected: {said[-1000:]}"
            return
        if not files and not broken:
            self.why = "nothing is collected"
            return
        self.counts.update(failed=len(broken), skipped=len(skipped), total=len(broken) + len(skipped))
        for name, cases in files.items():
            self.file(str(name), [str(one) for one in cases])

    def file(self, name, cases):
        nonce, answer, _ = self.spawn(self.court.place / "judge.py", ["--run", name])
        seen = self.court.answer(nonce, answer) if nonce is not None else {}
        for case in cases:
            outcome = seen.get(case, ["failed"])[0]
            kind = {"passed": "passed", "xpassed": "passed", "skipped": "skipped", "xfailed": "skipped"}.get(outcome, "failed")
            self.counts.update({kind: 1, "total": 1})
            self.seen[case] = outcome


def located(name, tree):
    return judge.located(name, {"<root>": str(tree), "<venv>": str(Path(sys.executable).parent.parent)})


def rate(satisfied):
    return sum(satisfied.values()) / len(satisfied) if satisfied else 0.0


def of_patterns(task, tree, base, put):
    """Which patterns are satisfied. What does not read here as it does for gistmill is left out."""
    after, aside = scanned(tree, task), {}
    for path in put:
        place = os.path.join(tree, path)
        if path.endswith(PYTHON) and is_ignored(path, task) and os.path.isfile(place) and not os.path.islink(place):
            aside[path] = read(place)
    satisfied, left_out = {}, []
    for one in task["patterns"]:
        before = matches(one, base)
        if (before == 0) != (one["side"] == "additive"):
            left_out.append(one["id"])
        elif one["side"] == "additive":
            satisfied[one["id"]] = matches(one, after) > 0
        else:
            satisfied[one["id"]] = matches(one, after) + matches(one, aside) == 0
    return satisfied, left_out


def judged(task, patch, container):
    tree = Path(task["workdir"])
    if not tree.is_dir():
        raise judge.MachineFault(f"there is no tree at {tree}")
    if container and os.geteuid() == 0:
        judge.clean_container(tree)
    reset(tree)
    report = {"instance_id": task["instance_id"], "class": "passes", "why": None, "counts": {}, "missing": task["must_pass"]}
    base = scanned(tree, task)
    why, put = apply(tree, patch)
    try:
        satisfied, left_out = of_patterns(task, tree, base, put)
    except TooLarge as large:
        why = str(large)
        reset(tree)
        satisfied, left_out = of_patterns(task, tree, base, [])
    if not satisfied:
        raise judge.MachineFault("no pattern reads here as it does for gistmill")
    report.update(satisfied=satisfied, left_out=left_out, ifr=rate(satisfied))
    if why is not None:
        return {**report, "class": "patch-failed", "why": why, "pass": 0, "pass_set": 0}
    court = judge.Court(task)
    court.restore()
    with tempfile.TemporaryFile() as output:
        if court.spawn(["-c", "import pytest"], 120, output)[0] != 0:
            raise judge.MachineFault("pytest cannot be started here")
    suite = Suite(court, task)
    suite.run()
    shutil.rmtree(court.place, ignore_errors=True)
    missing = [name for name in task["must_pass"] if suite.seen.get(located(name, tree)) != "passed"]
    counts = suite.counts
    is_within = suite.why is None and counts["passed"] >= task["p_min"] and counts["failed"] <= task["f_max"]
    kind = "suite-crashes" if suite.why else "passes" if is_within else "regression"
    why = suite.why or (None if is_within else f"{counts['passed']} passed, at least {task['p_min']}; {counts['failed']} failed, at most {task['f_max']}")
    return {**report, "class": kind, "why": why, "counts": counts, "missing": missing, "pass": int(is_within), "pass_set": int(not missing)}


def main(task_file, patch, folder, log, container):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("reward.json", "reward.txt", "reward-details.json"):
        judge.remove(folder / name)
    if os.geteuid() == 0:
        for place in (folder, Path(task_file).parent if container else None):
            if place is not None:
                os.chmod(place, 0o700)
        os.chmod(task_file, 0o600)
    task = json.loads(Path(task_file).read_text())
    report = judged(task, Path(patch), container)
    reward = report["pass"] * report["ifr"]
    judge.write(folder, "reward-details.json", {**report, "reward": reward})
    judge.write(folder, "reward.json", {"reward": reward, "pass": report["pass"], "pass_set": report["pass_set"], "ifr": report["ifr"]})
    print(f"{report['instance_id']}: {report['class']}, IFR {report['ifr']:.3f}, reward {reward:.3f}; {report['why'] or 'within the bounds'}")
    if log:
        missing = set(report["missing"])
        for name in task["must_pass"]:
            print("FAILED" if name in missing else "PASSED", name)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1 and sys.argv[1] == "--collect":
        collect(sys.argv[2:])
    given = sys.argv[1:]
    options = [given.pop(given.index(one)) if one in given[:2] else None for one in ("--container", "--log")]
    if len(given) != 3:
        sys.exit(__doc__)
    try:
        main(*given, log=bool(options[1]), container=bool(options[0]))
    except (judge.MachineFault, OSError, KeyError) as fault:
        print(f"the machine's fault, nothing is judged: {fault!r}", file=sys.stderr)
        sys.exit(3)
