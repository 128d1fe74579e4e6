"""Writes byte code of test files as pytest compiles them: with their assertions rewritten. Nothing of the tree is imported.

    rewrite.py SPEC

SPEC is a JSON file with `root` (the tree), `site` (site-packages with pytest), `files` (test files below the root) and `out`, where the
byte code is left under the paths that it has below the root. Works on CPython 3.8 and newer with pytest 7 and newer.
"""

import json
import os
import pathlib
import sys

# Characters of a settings file that are read.
MOST = 16 << 20


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        spec = json.load(file)
    sys.path.append(spec["site"])
    from _pytest.assertion import rewrite

    if asks_for_pass_hook(spec["root"]):
        return

    def write(name):
        path = pathlib.Path(spec["root"], name)
        # A link may lead anywhere.
        if path.suffix != ".py" or path.resolve() != path:
            return
        try:
            status, code = rewrite._rewrite_test(path, None)
        except Exception:
            return
        folder = os.path.join(spec["out"], os.path.dirname(name), "__pycache__")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, path.name[:-3] + rewrite.PYC_TAIL), "wb") as file:
            rewrite._write_pyc_fp(file, status, code)

    on_all_processors(write, sorted(set(spec["files"]) | conftests(spec["root"])))


def on_all_processors(work, items):
    """Call a function for each item. Forks go without what multiprocessing needs of a machine."""
    count = max(1, min(len(os.sched_getaffinity(0)), len(items)))
    children = []
    for number in range(1, count):
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                for item in items[number::count]:
                    work(item)
                failed = 0
            finally:
                os._exit(failed)
        children.append(child)
    for item in items[::count]:
        work(item)
    if any([os.waitpid(child, 0)[1] for child in children]):
        sys.exit("a process that shared the work failed")


def asks_for_pass_hook(root):
    """Whether pytest is told to compile another way than by default."""
    for name in ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        path = os.path.join(root, name)
        # A link may lead to what has no end.
        if not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if "enable_assertion_pass_hook" in file.read(MOST):
                    return True
        except OSError:
            pass
    return False


def conftests(root):
    found = set()
    for folder, _, names in os.walk(root):
        if "conftest.py" in names:
            found.add(os.path.relpath(os.path.join(folder, "conftest.py"), root))
    return found


main()
