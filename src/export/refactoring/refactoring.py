"""Judges a patch to a repository: its whole suite within bounds, and patterns of code that have to appear and to vanish.

usage: refactoring.py [--container] [--log] TASK.json PATCH FOLDER

FOLDER gets reward.json (reward = PASS x IFR, with pass, pass_set, ifr) and reward-details.json; --log prints a line for each case
that must pass. The patch is applied strictly to the tree's one commit. Each test file runs in a process of its own, as a user
of its own where the judge is root. What the patch does wrong is 0; what the machine does wrong is exit code 3, and no reward.json.
"""

import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

# What collects runs as another user, in a folder that it cannot list: no module is found there.
if sys.argv[1:2] != ["--collect"]:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import judge  # noqa: E402
    from features import LARGEST_SOURCE, features  # noqa: E402

LARGEST_PATCH = 64 << 20
PYTHON = (".py", ".pyi")
# What the binary files of a patch may come to, and what git may use to apply it.
MOST_BINARY, MOST_MEMORY = 256 << 20, 4 << 30
# What is written in the place of a patch that could not be taken.
NOT_TAKEN = b"gistmill: git could not take"
CACHED = (".pyc", ".pyo")
# Where scripts of a suite are, how often they run until they give counts, and how much of what they print is looked at.
SCRIPTS, TRIES, LARGEST_OUTPUT = Path("/scripts"), 4, 256 << 10
START = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"


# --- patterns


def is_ignored(path, task):
    return any(part in task["ignored"] for part in path.split("/"))


def committed(tree, root):
    """The regular files of a commit by path: (name of the content, size)."""
    found = {}
    for line in git(tree, "ls-tree", "-r", "-l", "-z", "--full-tree", root, must=True).split(b"\0"):
        about, _, path = line.partition(b"\t")
        if about.startswith(b"100"):
            _, _, name, size = about.split()
            found[os.fsdecode(path)] = (name, int(size))
    return found


def of_commit(tree, listed, task):
    """Features of each Python file of the base that is looked through, by its path. Nothing on disk counts."""
    looked = [path for path in listed if path.endswith(PYTHON) and not is_ignored(path, task)]
    asked = b"".join(listed[path][0] + b"\n" for path in looked)
    answer, found = io.BytesIO(git(tree, "cat-file", "--batch", must=True, input=asked)), {}
    for path in looked:
        if answer.readline().split()[:1] != [listed[path][0]]:
            raise judge.MachineFault(f"the commit of {tree} is damaged")
        found[path] = features(answer.read(listed[path][1]))
        answer.read(1)
    return found


def on_disk(tree, wanted):
    """Features of the Python files of the tree that are wanted, by their path. The interpreter's own folder is none of it."""
    found = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [one for one in folders if one != ".git" and not is_prefix(os.path.join(folder, one))]
        for name in names:
            place = os.path.join(folder, name)
            path = os.path.relpath(place, tree)
            if name.endswith(PYTHON) and wanted(path) and not os.path.islink(place) and os.path.isfile(place):
                with open(place, "rb") as opened:
                    found[path] = features(opened.read(LARGEST_SOURCE + 1))
    return found


def is_prefix(place):
    return os.path.realpath(place) == os.path.realpath(sys.prefix)


def matches(pattern, files):
    key = (pattern["kind"], pattern["name"])
    only, but = pattern["only"], pattern["but"]
    looked = (found for path, found in files.items() if path not in but and (not only or path in only))
    return sum(found[key] for found in looked)


# --- the tree and the patch


def git(tree, *words, must=False, **more):
    """Runs git; gives what it says where it must not fail."""
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", f"safe.directory={tree}"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    plain.update(GIT_CONFIG_NOSYSTEM="1", HOME="/nonexistent")
    try:
        done = subprocess.run(["git", "-C", str(tree), *safe, *words], env=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    except OSError as error:
        raise judge.MachineFault(f"git cannot be started: {error}") from error
    if must and done.returncode:
        raise judge.MachineFault(done.stderr.decode(errors="replace")[-500:])
    return done.stdout if must else done


def reset(tree):
    """Makes the files of the tree what its first commit has; what is ignored stays, as the image has built it there, but for caches
    that are run without a source and for environments that are not this interpreter's. Gives the commit's files."""
    root = git(tree, "rev-list", "--max-parents=0", "HEAD").stdout.split()
    if not root:
        raise judge.MachineFault(f"{tree} has no commit")
    root = root[-1].decode()
    if os.path.isdir(os.path.join(tree, ".git")):
        judge.remove(Path(tree, ".git", "index.lock"))
    git(tree, "reset", "-q", "--hard", root, must=True)
    git(tree, "clean", "-q", "-f", "-d", must=True)
    listed = committed(tree, root)
    for folder, folders, names in os.walk(tree):
        folders[:] = [one for one in folders if one != ".git" and not is_prefix(os.path.join(folder, one))]
        path = os.path.relpath(folder, tree)
        if "pyvenv.cfg" in names and path != "." and not any(one.startswith(path + "/") for one in listed):
            judge.remove(Path(folder))
            folders[:] = []
            continue
        for name in names:
            place = os.path.join(folder, name)
            if name.endswith(CACHED) and os.path.relpath(place, tree) not in listed:
                judge.remove(Path(place))
    return listed


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def apply(tree, patch):
    """Applies the patch; the reason where it cannot be. Gives the files that it puts."""
    if patch.is_symlink() or not patch.is_file() or patch.stat().st_size > LARGEST_PATCH:
        return f"there is no patch of at most {LARGEST_PATCH} bytes", []
    data = patch.read_bytes()
    if data.startswith(NOT_TAKEN):
        raise judge.MachineFault("what changed could not be taken from the tree where the work was done")
    if not data.strip():
        return None, []
    if sum(int(one) for one in re.findall(rb"(?m)^(?:literal|delta) (\d{1,20})\s*$", data)) > MOST_BINARY:
        return f"the patch has binary files of more than {MOST_BINARY} bytes", []
    name = str(patch.resolve())
    summary = git(tree, "apply", "--summary", name)
    if summary.returncode or b"mode 120000" in summary.stdout or b"mode 160000" in summary.stdout:
        why = summary.stderr.decode(errors="replace").strip() or "it makes a link or a submodule"
        return f"the patch cannot be applied: {why[-500:]}", []
    listed = git(tree, "apply", "--numstat", "-z", name).stdout.split(b"\0")
    put = [os.fsdecode(one.split(b"\t", 2)[-1]) for one in listed if one]
    done = git(tree, "apply", "--binary", "--whitespace=nowarn", name, preexec_fn=limited)
    if done.returncode:
        return f"the patch cannot be applied: {done.stderr.decode(errors='replace').strip()[-500:]}", []
    places = [(path, os.path.join(tree, path)) for path in put]
    if any(os.path.islink(place) for _, place in places):
        return "the patch cannot be applied: it moves or changes a link", []
    cached = next((path for path, place in places if path.endswith(CACHED) and os.path.exists(place)), None)
    if cached is not None:
        return f"the patch cannot be applied: {cached[-500:]} is code without a source", []
    return None, put


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
        self.seen, self.why, self.is_late = {}, None, False
        self.until = time.monotonic() + task["seconds"]

    def spawn(self, script, words):
        left = self.until - time.monotonic()
        if left <= 0:
            self.is_late = True
            return None, b"", ""
        nonce = os.urandom(16).hex()
        self.court.restore()
        with tempfile.TemporaryFile() as said:
            code, answer = self.court.spawn([str(script), *words], left, said, nonce.encode() + b"\n")
            self.is_late = self.is_late or code is None
            said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
            return (nonce if code == 0 else None), answer, said.read().decode(errors="replace")

    def run(self):
        script = self.court.place / "refactoring.py"
        shutil.copyfile(__file__, script)
        script.chmod(0o644)
        nonce, answer, said = self.spawn(script, ["--collect", *self.task["tests"]])
        collected = read_collected(answer, nonce)
        if collected is None:
            self.why = f"nothing can be collected: {said[-1000:]}"
            return
        files, broken, skipped = collected
        if not files and not broken:
            self.why = "nothing is collected"
            return
        self.counts.update(failed=len(broken), skipped=len(skipped), total=len(broken) + len(skipped))
        for name, cases in files.items():
            self.file(name, cases)

    def file(self, name, cases):
        nonce, answer, _ = self.spawn(self.court.place / "judge.py", ["--run", name])
        seen = self.court.answer(nonce, answer) if nonce is not None else {}
        for case in cases:
            outcome = seen.get(case, ["failed"])[0]
            kind = {"passed": "passed", "xpassed": "passed", "skipped": "skipped", "xfailed": "skipped"}.get(outcome, "failed")
            self.counts.update({kind: 1, "total": 1})
            self.seen[case] = outcome


class Scripted(Suite):
    """A whole run by scripts of the task, which give counts alone: the first of a few runs that does."""

    def run(self):
        judge.remove(SCRIPTS)
        for path, content in self.task["scripts"].items():
            place = SCRIPTS / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(bytes.fromhex(content))
            place.chmod(0o755)
        for folder, _, _ in os.walk(SCRIPTS):
            os.chmod(folder, 0o755)
        self.why = "the script gives no counts"
        for _ in range(TRIES):
            left = self.until - time.monotonic()
            self.is_late = self.is_late or left <= 0
            if self.is_late:
                return
            self.court.restore()
            with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
                code, _ = self.court.spawn(["-c", START, "bash", "-c", self.task["run"]], left, said, output=output)
                output.seek(max(0, output.seek(0, os.SEEK_END) - LARGEST_OUTPUT))
                counts = read_counts(output.read().decode(errors="replace"))
                said.seek(max(0, said.seek(0, os.SEEK_END) - 1000))
                self.is_late = code is None
                if counts and not self.is_late:
                    self.counts.update(counts)
                    self.why = None
                    return
                self.why = f"the script gives no counts: {said.read().decode(errors='replace')}"


def read_counts(output):
    """The counts of the last line that has them, of the last ten; none where they cannot be."""
    for line in reversed(output.strip().split("\n")[-10:]):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(told, dict):
            continue
        counts = {key: told.get(key, 0 if key == "skipped" else None) for key in ("passed", "failed", "skipped", "total")}
        if all(type(count) is int for count in counts.values()):
            is_right = min(counts.values()) >= 0 and counts["passed"] + counts["failed"] <= counts["total"]
            return counts if is_right else None
    return None


def read_collected(answer, nonce):
    """Cases by file, what is broken and what is skipped; nothing where it is not what the script writes."""
    try:
        told, files, broken, skipped = json.loads(answer)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    if nonce is None or told != nonce or not isinstance(files, dict):
        return None
    lists = [broken, skipped, *files.values()]
    if not all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in lists):
        return None
    return files, broken, skipped


def located(name, tree):
    return judge.located(name, {"<root>": str(tree), "<venv>": str(Path(sys.executable).parent.parent)})


def rate(satisfied):
    return sum(satisfied.values()) / len(satisfied) if satisfied else 0.0


def hidden(base, after, put):
    """Files that the patch puts and that cannot be read, with the reason. One that was the same before hides nothing new."""
    known = {(path, one.unread) for path, one in base.items() if one.unread}
    digests = {one.digest for one in base.values() if one.unread}
    unread = {path: after[path] for path in put if path in after and after[path].unread}
    return {path: one.unread for path, one in unread.items() if (path, one.unread) not in known and one.digest not in digests}


def of_patterns(task, tree, listed, base, put):
    """Which patterns are satisfied, those that are left out as they read otherwise here than for gistmill, and files that hide what
    they have. What no patch brings is looked through for what has to vanish, as it may run."""
    put = set(put)
    files = on_disk(tree, lambda path: path in put or path not in listed or not is_ignored(path, task))
    after = {path: one for path, one in files.items() if not is_ignored(path, task) and (path in put or path in listed)}
    aside = {path: one for path, one in files.items() if path not in after}
    unread = hidden(base, files, put)
    satisfied, left_out = {}, []
    for one in task["patterns"]:
        before = matches(one, base)
        if (before == 0) != (one["side"] == "additive"):
            left_out.append(one["id"])
        elif one["side"] == "additive":
            satisfied[one["id"]] = matches(one, after) > 0
        else:
            satisfied[one["id"]] = not unread and matches(one, after) + matches(one, aside) == 0
    return satisfied, left_out, unread


def judged(task, patch, container):
    tree = Path(task["workdir"])
    if not tree.is_dir():
        raise judge.MachineFault(f"there is no tree at {tree}")
    if container and os.geteuid() == 0:
        judge.clean_container(tree)
    elif task["scripts"]:
        raise judge.MachineFault("scripts run a suite in a container alone, and as root")
    listed = reset(tree)
    report = {"instance_id": task["instance_id"], "class": "passes", "why": None, "counts": {}, "missing": task["must_pass"]}
    base = of_commit(tree, listed, task)
    why, put = apply(tree, patch)
    if why is not None:
        reset(tree)
    satisfied, left_out, unread = of_patterns(task, tree, listed, base, put)
    if not satisfied:
        raise judge.MachineFault("no pattern reads here as it does for gistmill")
    report.update(satisfied=satisfied, left_out=left_out, unread=unread, ifr=rate(satisfied))
    if why is not None:
        return {**report, "class": "patch-failed", "why": why, "pass": 0, "pass_set": None if task["scripts"] else 0}
    court = judge.Court(task)
    court.restore()
    with tempfile.TemporaryFile() as output:
        needed = "pass" if task["scripts"] else "import pytest"
        if court.spawn(["-c", needed], 120, output)[0] != 0:
            raise judge.MachineFault("pytest cannot be started here")
    suite = (Scripted if task["scripts"] else Suite)(court, task)
    suite.run()
    shutil.rmtree(court.place, ignore_errors=True)
    missing = [name for name in task["must_pass"] if suite.seen.get(located(name, tree)) != "passed"]
    counts = suite.counts
    is_within = suite.why is None and counts["passed"] >= task["p_min"] and counts["failed"] <= task["f_max"]
    kind = "suite-crashes" if suite.why else "passes" if is_within else "regression"
    why = suite.why or (None if is_within else f"{counts['passed']} passed, at least {task['p_min']}; {counts['failed']} failed, at most {task['f_max']}")
    if suite.is_late:
        why = f"{why or 'it passes'}; not all could run in {task['seconds']} s"
    return {**report, "class": kind, "why": why, "counts": counts, "missing": missing, "pass": int(is_within), "pass_set": None if task["scripts"] else int(not missing)}


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
    rewards = {"reward": reward, "pass": report["pass"], "pass_set": report["pass_set"], "ifr": report["ifr"]}
    # Scripts name no case.
    judge.write(folder, "reward.json", {name: value for name, value in rewards.items() if value is not None})
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
