"""Makes submissions out of the functions of a repository, changes them at random, and says what oracle.py makes of them.

    compare.py FOLDER COUNT SEED      reads the Python files below FOLDER
    compare.py --made COUNT SEED      makes up the files as well

Prints JSON: `modules`, `files`, and `cases` with what is expected of each.
"""

import ast
import json
import os
import random
import re
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import made
import oracle

warnings.simplefilter("ignore")
LARGEST_FILE = 60_000


def read(folder):
    files = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = os.path.join(place, name)
            if not name.endswith(".py") or os.path.islink(path):
                continue
            try:
                with open(path, encoding="utf-8", newline="") as source:
                    text = source.read()
            except UnicodeDecodeError:
                continue
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            files[re.sub("^(src|lib)/", "", relative)] = text
    return files


def modules_of(files):
    found = set()
    for path in files:
        parts = path[: -len(".py")].split("/")
        if not all(part.isidentifier() for part in parts):
            continue
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found.update(".".join(parts[: n + 1]) for n in range(len(parts)))
    return found


def parsed(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def pieces(text, tree):
    """The texts of a file's statements."""
    rows = text.split("\n")
    out = []
    for s in tree.body:
        first = min([s.lineno] + [d.lineno for d in getattr(s, "decorator_list", [])])
        out.append("\n".join(rows[first - 1 : s.end_lineno]))
    return out


def tests_of(tree):
    chains = []

    def visit(body, chain):
        for s in body:
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)) and s.name.startswith("test"):
                chains.append(chain + [s.name])
            elif isinstance(s, ast.ClassDef):
                visit(s.body, chain + [s.name])

    visit(tree.body, [])
    return [chain for chain in chains if oracle.definition(tree, chain) is not None]


def change(rng, text):
    """One small change of a text."""
    rows = text.split("\n")
    at = rng.randrange(len(rows))
    kind = rng.randrange(9)
    if kind == 0:
        del rows[at]
    elif kind == 1:
        rows.insert(at, rows[rng.randrange(len(rows))])
    elif kind == 2:
        rows[at] = re.sub(r"\b[a-z_]\w+\b", "changed", rows[at], count=1)
    elif kind == 3:
        rows[at] = re.sub(r"\b\w+\.(?=\w)", "", rows[at], count=1)
    elif kind == 4:
        rows[at] = rows[at].replace("elif ", "if ", 1) if "elif " in rows[at] else rows[at].replace("self.", "", 1)
    elif kind == 5:
        rows[at] += "  # changed"
    elif kind == 6:
        rows[at] = re.sub(r"\d+", lambda m: str(int(m.group()[:9]) + 1), rows[at], count=1)
    elif kind == 7:
        rows[at] = re.sub(r",\s*\w+(?==|\)|:)", "", rows[at], count=1)
    else:
        return "if True:\n" + "\n".join("    " + row for row in rows)
    return "\n".join(rows)


def submission(rng, files, trees, test):
    """Statements of some files, the test among them, each changed or not."""
    chosen = []
    for path in rng.sample(sorted(trees), min(len(trees), rng.randrange(1, 5))):
        parts = pieces(files[path], trees[path])
        chosen += rng.sample(parts, min(len(parts), rng.randrange(1, 8)))
    if test is not None:
        path, chain = test
        tree = trees[path]
        chosen += [p for p, s in zip(pieces(files[path], tree), tree.body) if getattr(s, "name", None) == chain[0]]
    out = []
    for text in chosen:
        for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
            text = change(rng, text)
        out.append(text)
    rng.shuffle(out)
    whole = "\n".join(out) + "\n"
    if parsed(whole) is None and rng.random() < 0.95:
        whole = "\n".join(t for t in out if parsed(t) is not None) + "\n"
    return whole


def expected(text, events, test, files, originals, modules):
    if parsed(text) is None:
        return None
    out = {}
    for name, control in (("existence", False), ("control", True)):
        out[name] = oracle.existence_in(text, originals, modules, control)[:2]
    out["execution"] = oracle.execution(text, events)
    out["statements"] = oracle.execution_statements(text, events)
    if test is not None:
        path, chain = test
        out["f1"] = oracle.test_f1(text, files[path], chain, modules)
        new, out["injection"] = oracle.inject(text, files[path], chain, modules)
        out["evaluated"] = new
    return out


def main():
    count, seed = int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    files = made.repository(rng) if sys.argv[1] == "--made" else read(sys.argv[1])
    modules = modules_of(files)
    trees = {path: parsed(text) for path, text in files.items() if len(text) < LARGEST_FILE}
    trees = {path: tree for path, tree in trees.items() if tree is not None and tree.body}
    originals = oracle.corpus(files, modules)
    tests = [(path, chain) for path, tree in sorted(trees.items()) for chain in tests_of(tree)]
    cases = []
    for _ in range(count):
        test = rng.choice(tests) if tests else None
        text = submission(rng, files, trees, test)
        events = sorted(line + 1 for line in range(text.count("\n")) if rng.random() < 0.5)
        want = expected(text, set(events), test, files, originals, modules)
        case = {"text": text, "events": events, "expected": want}
        if test is not None:
            case.update(test="::".join(test[1]), file=test[0])
        cases.append(case)
    json.dump({"modules": sorted(modules), "files": files, "cases": cases}, sys.stdout)


main()
