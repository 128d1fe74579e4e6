"""Judges one file by what pytest says of its test, or by what it shows as a command, in a tree without the repository's Python code.

usage: judge.py [--container] [--log] TASK.json FILE FOLDER

TASK.json says which test is run, what it looks like, and how each case must end. FOLDER gets reward.json (one number) and
reward-details.json; --log prints a line for each case as pytest does, once nothing of the file runs any more. What the file does
wrong is 0. What the machine does wrong is exit code 3, and no reward.json.

The file runs as a user of its own, where the judge is root. The original test takes the place of the file's, as it is and edited
in ways that TASK.json knows, in an order that nobody can know and all in the same manner: each must show what it shows in the
repository. Where a command is judged, the file is run as it was, and with other input: status, output and files must be those of
the repository. Where no edits are known, the file's test must be the original one, names of modules aside, and three times it has an
exception at its start: with one it must not pass. --container says that nothing else runs here: settings that somebody left are
taken away.
"""

import ast
import builtins
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import random
import re
import resource
import runpy
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
LARGEST_ANSWER = 8 << 20
LARGEST_HASHED = 1 << 30
LONGEST_TEXT = 20_000
# In seconds: how soon after its start a container has begun all that it consists of.
AT_ONCE = 5
WORST = {"passed": 0, "xpassed": 1, "xfailed": 2, "skipped": 3, "failed": 4, "error": 5}
EVERYBODYS = frozenset(dir(builtins))
RAISED = ["NameError", "AttributeError", "TypeError", "AssertionError", "KeyError", "ImportError"]


# What of a project's metadata may be asked for.
KEPT = ("Metadata-Version: ", "Name: ", "Version: ")
# Beside the script that runs: the names of the modules that were taken out of the tree.
HIDDEN = "hidden.json"


class MachineFault(Exception):
    """Nothing that the file did."""


class Outcomes:
    """What pytest reports of each case: the first phase that fails decides. As (outcome, exception, text)."""

    def __init__(self):
        self.seen, self.raised = {}, {}

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None:
            kind = call.excinfo.type
            self.raised[item.nodeid, call.when] = f"{kind.__module__}.{kind.__qualname__}"

    def pytest_runtest_logreport(self, report):
        outcome = self.outcome(report)
        known = self.seen.get(report.nodeid, ["passed", None, ""])
        if WORST[outcome] > WORST[known[0]] or report.nodeid not in self.seen:
            raised = None if outcome in ("passed", "skipped") else self.raised.get((report.nodeid, report.when))
            text = str(report.longrepr or "")[-LONGEST_TEXT:] if outcome in ("failed", "error") else ""
            self.seen[report.nodeid] = [outcome, raised, text]

    @staticmethod
    def outcome(report):
        if report.failed:
            return "failed" if report.when == "call" else "error"
        if hasattr(report, "wasxfail"):
            return "xfailed" if report.skipped else "xpassed"
        return "skipped" if report.skipped else "passed"


class WithoutHidden:
    """Has pytest do without plugins and categories of warnings in modules that were taken out of the tree: settings of the
    repository name them."""

    def __init__(self, hidden):
        self.hidden = hidden

    def owns(self, module):
        return module in self.hidden and not is_there(module)

    def pytest_plugin_registered(self, plugin, manager):
        if plugin is not self:
            return
        config = manager.get_plugin("pytestconfig")
        imported, configured = manager.import_plugin, config.getini

        def import_plugin(name, *given, **named):
            try:
                return imported(name, *given, **named)
            except Exception:
                if not self.owns(name):
                    raise
                return None

        def getini(name):
            value = configured(name)
            if name == "filterwarnings":
                # The same list: others add to it.
                value[:] = [one for one in value if not self.owns(category_of(one))]
            return value

        manager.import_plugin, config.getini = import_plugin, getini
        for distribution in importlib.metadata.distributions():
            for point in distribution.entry_points:
                if point.group == "pytest11" and self.owns(point.value.partition(":")[0].strip()):
                    manager.set_blocked(point.name)


def category_of(text):
    """The module of the category that a filter of warnings names; empty where it has none."""
    parts = text.split(":")
    return parts[2].strip().rpartition(".")[0] if len(parts) > 2 else ""


def is_there(module):
    """Whether a module has code in a file that can be found. Nothing is imported for it: pytest wants to be the first for its
    plugins."""
    first, *rest = module.split(".")
    try:
        found = importlib.util.find_spec(first) if first else None
        for end in range(1, len(rest) + 1):
            places = found and found.submodule_search_locations
            found = importlib.machinery.PathFinder.find_spec(".".join([first, *rest[:end]]), places) if places else None
    except (ImportError, ValueError, AttributeError):
        return False
    # A folder without code is a package of its own kind.
    return found is not None and found.origin is not None


def names_of(path):
    """The names by which a file may be imported, whichever of its folders is on the path."""
    parts = list(Path(path).parent.parts) + [Path(path).name.partition(".")[0]]
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return {".".join(parts[at:]) for at in range(len(parts))}


def run(tests):
    """In a process of its own: runs tests as `python -m pytest` would. Nothing that the file leaves to the end is run."""
    nonce, report = sys.stdin.readline().strip(), os.dup(1)
    os.dup2(2, 1)
    import pytest

    sys.path[0] = os.getcwd()
    outcomes, about = Outcomes(), Path(__file__).parent / HIDDEN
    plugins = [outcomes, WithoutHidden(set(json.loads(about.read_text())))] if about.exists() else [outcomes]
    code = pytest.main(["-p", "no:cacheprovider", *tests], plugins=plugins)
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(report, "w") as opened:
        opened.write(json.dumps([nonce, int(code), outcomes.seen]))
    os._exit(0)


def bodies(statement):
    """The statements within control flow; functions and classes have none."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    found = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
    parts = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
    return [*found[:1], *(part.body for part in parts), *found[1:]]


def last(body, name, kinds):
    """What defines a name last, control flow around it ignored."""
    for one in reversed(body):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if one.name == name:
                return one if isinstance(one, kinds) else None
            continue
        for inner in reversed(bodies(one)):
            found = last(inner, name, kinds)
            if found is not None:
                return found
    return None


def definition(module, name):
    """The function `Class::function` of a module, defined last; none where there is none."""
    body, parts = module.body, name.split("::")
    for part in parts[:-1]:
        found = last(body, part, ast.ClassDef)
        body = [] if found is None else found.body
    return last(body, parts[-1], (ast.FunctionDef, ast.AsyncFunctionDef))


def bound_names(module):
    """Names that a file binds in its module."""
    names, left = set(), list(module.body)
    while left:
        one = left.pop()
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            is_from = isinstance(one, ast.ImportFrom)
            names |= {alias.asname or (alias.name if is_from else alias.name.split(".")[0]) for alias in one.names}
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(one.name)
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
        elif isinstance(one, ast.comprehension):
            left.append(one.iter)
        elif isinstance(one, ast.Lambda):
            left += [default for default in (*one.args.defaults, *one.args.kw_defaults) if default]
        elif isinstance(one, ast.AugAssign):
            left.append(one.value)
        elif isinstance(one, ast.AnnAssign):
            left += [one.target, one.value] if one.value else []
        else:
            # Of handlers and patterns.
            kind = type(one).__name__
            if kind in ("ExceptHandler", "MatchAs", "MatchStar"):
                names.add(one.name)
            elif kind == "MatchMapping":
                names.add(one.rest)
            left += ast.iter_child_nodes(one)
    return names - {None, "*"}


def own_names(test):
    """Names that a test, or a function in it, binds for itself, imports left out."""
    arguments = [one.arg for one in ast.walk(test) if isinstance(one, ast.arg)]
    return {*arguments, *(one.id for one in ast.walk(test) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load))}


def dotted(expression):
    """The dotted name that an expression is; none where it is something else."""
    path = []
    while isinstance(expression, ast.Attribute):
        path.append(expression.attr)
        expression = expression.value
    return ".".join([expression.id, *reversed(path)]) if isinstance(expression, ast.Name) else None


def names_of_file(text, name):
    """What the module of a file binds, and the dotted names, with all their beginnings, of its test that are not the test's own."""
    module = ast.parse(text)
    test = definition(module, name)
    own, used = own_names(test), {dotted(one) for one in ast.walk(test)} - {None}
    return bound_names(module), {one for one in used if one.partition(".")[0] not in own}


def chosen(choices, bound, used):
    """The first text whose name is bound and that the submitted test has itself; else the first whose name is bound and used there;
    else the first whose name is bound, or that has none."""
    fit = [(name, text) for name, text in choices if name is None or name in bound]
    best = [text for name, text in fit if name is not None and text in used]
    return next(iter(best or [text for name, text in fit if name in used] or [text for _, text in fit]), None)


def with_test(text, name, parts, names=None):
    """The file with another definition in the place of its test. `parts` are as gistmill writes them, `names` those of the submission
    where this is another file."""
    bound, used = names or names_of_file(text, name)
    place = definition(ast.parse(text), name)
    first = min([place.lineno, *(one.lineno for one in place.decorator_list)])
    lines = text.encode().splitlines(keepends=True)
    head = lines[first - 1]
    indentation = head[: len(head) - len(head.lstrip())].decode()
    made = []
    for part in parts:
        if part is None:
            made.append(indentation)
        elif isinstance(part, dict):
            made.append("; ".join(filter(None, (chosen(one, bound, used) for one in part["statements"]))) or "pass")
        else:
            made.append(part if isinstance(part, str) else chosen(part, bound, used) or "")
    return b"".join([*lines[: first - 1], "".join(made).encode(), b"\n", *lines[place.end_lineno :]]).decode()


class Plain(ast.NodeTransformer):
    """A test without what differs between a repository and one file: imports, the modules that names are reached by, docstrings, and
    what those names are that are neither the test's nor everybody's: they are numbered as they come."""

    def __init__(self, test):
        self.numbers = {}
        self.own = own_names(test)

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


# What leads to the tools that run a test, or makes code of data: docs/scoring.md of gistmill has the whole rules.
TOOLS = frozenset(
    "_pytest pluggy ctypes _ctypes cffi posix bdb marshal zipimport runpy imp codeop code _pickle dill cloudpickle _imp"
    " _frozen_importlib sys._getframe sys._current_frames sys.settrace sys.setprofile sys.monitoring sys.addaudithook sys.meta_path"
    " sys.path_hooks sys.modules threading.settrace threading.setprofile inspect.stack inspect.trace inspect.currentframe"
    " traceback.walk_stack os._exit os.abort os.kill gc.get_objects gc.get_referrers gc.get_referents gc.callbacks unittest.case"
    " unittest.runner unittest.main pickle.loads pickle.load pickle.Unpickler types.CodeType types.FunctionType builtins.exec"
    " builtins.eval builtins.compile importlib.abc importlib._bootstrap importlib._bootstrap_external importlib.machinery"
    " importlib.util.module_from_spec importlib.util.spec_from_loader importlib.util.spec_from_file_location pytest.hookimpl"
    " pytest.hookspec pytest.main pytest.Function pytest.Item pytest.Session pytest.Config pytest.CallInfo pytest.TestReport"
    " pytest.Module pytest.Class pytest.Collector pytest.PytestPluginManager atexit signal".split()
)
# Types of fixtures, where older versions of pytest have them.
TYPES = ("_pytest.capture", "_pytest.fixtures.FixtureRequest", "_pytest.logging", "_pytest.monkeypatch", "_pytest.recwarn", "_pytest.tmpdir")
ATTRIBUTES = frozenset(
    "__code__ __globals__ __builtins__ __closure__ _getframe _current_frames _pyfuncitem _fixturemanager _fixtureinfo _arg2fixturedefs"
    " _callTestMethod f_back f_builtins f_code f_globals f_locals f_trace tb_frame gi_frame cr_frame ag_frame co_code co_consts"
    " get_objects get_referrers get_referents ihook pluginmanager exec_module load_module".split()
)
STORED = ("pytest", "_pytest", "pluggy", "unittest", "builtins", "__builtins__", "request.node", "request.function")
# Modules whose contents are no business of a file that asks for them by name.
NOT_BY_NAME = frozenset(
    "_pytest _io atexit builtins ctypes gc importlib inspect os pluggy posix pytest signal sys threading types unittest".split()
)
DECIDES = frozenset("__init_subclass__ __getattribute__ __getattr__ __new__ __prepare__ __call__ __set_name__ run debug".split())
MOST_TEXT, MOST_NUMBERS = 2_048, 400
RUN_TESTS = ("_pytest", "pluggy", "pytest", "unittest")
# The name of the test of a file that has none.
NO_TEST = "\0"
BODIES = ("body", "orelse", "finalbody", "handlers", "cases", "type_comment")


def chain(node):
    """The parts of a dotted name; none where it is none."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None


def heads(module):
    """Each statement, what is in it but for its bodies, and the form by which it is compared."""
    for one in ast.walk(module):
        if not isinstance(one, ast.stmt):
            continue
        fields = [value for name, value in ast.iter_fields(one) if name not in BODIES]
        parts = [part for value in fields for part in (value if isinstance(value, list) else [value])]
        nodes = [part for part in parts if isinstance(part, ast.AST)]
        plain = [part for part in parts if not isinstance(part, ast.AST)]
        yield one, nodes, (type(one).__name__, repr(plain), *map(ast.dump, nodes))


def own_statements(tree, code):
    """The forms of the statements that the repository has. Files that are not as they were pinned do not count."""
    known, own = set(), set(code)
    for folder, _, names in os.walk(tree):
        for name in names:
            place = os.path.join(folder, name)
            if not name.endswith(".py") or os.path.islink(place) or os.path.getsize(place) > LARGEST_FILE:
                continue
            data = Path(place).read_bytes()
            if hashlib.sha256(data).hexdigest() not in own or not any(word in data for word in WORDS):
                continue
            try:
                known.update(form for _, _, form in heads(ast.parse(data)))
            except (SyntaxError, ValueError, RecursionError):
                continue
    return known


WORDS = [word.rpartition(".")[2].encode() for word in TOOLS | ATTRIBUTES] + [b"exec", b"eval", b"compile", b"globals"]


class Strict:
    """What a file does outside its test that no file of the repository does in the same words."""

    def __init__(self, module, test, known):
        self.module, self.test, self.known = module, definition(module, test["defined_as"]), known
        self.names = {part for part in test["name"].split("::")}
        # Where a command is judged, what runs tests is a library like others.
        self.libraries = RUN_TESTS if test["name"] == NO_TEST else ()
        self.imports = {}
        for one in ast.walk(module):
            if isinstance(one, ast.Import):
                self.imports.update((alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]) for alias in one.names)
            elif isinstance(one, ast.ImportFrom) and not one.level:
                self.imports.update((alias.asname or alias.name, f"{one.module}.{alias.name}") for alias in one.names)
        self.defined = bound_names(module)

    def first(self, outside):
        """The first that is found; none where there is nothing."""
        within = {id(one) for one in ast.walk(self.test)} if self.test is not None else set()
        for statement, nodes, form in heads(self.module):
            if id(statement) in within or form in self.known:
                continue
            found = self.statement(statement) or next(filter(None, map(self.within, nodes)), None)
            if found:
                return f"line {statement.lineno}: {found}"
        return self.shadowed(outside)

    def dotted(self, node):
        parts = chain(node)
        return ".".join([self.imports.get(parts[0], parts[0]), *parts[1:]]) if parts else ""

    def leads(self, dotted):
        parts = dotted.split(".")
        is_tool = parts[0] not in self.libraries and any(".".join(parts[:size]) in TOOLS for size in range(1, len(parts) + 1))
        return is_tool and not dotted.startswith(TYPES)

    def statement(self, one):
        if isinstance(one, ast.Import):
            return next((f"imports {alias.name}" for alias in one.names if self.leads(alias.name)), None)
        if isinstance(one, ast.ImportFrom) and not one.level:
            names = [f"{one.module}.{alias.name}" for alias in one.names]
            return next((f"imports {name}" for name in names if self.leads(name)), None)
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name.startswith("pytest_") and not self.libraries:
            return f"defines the hook {one.name}"
        targets = getattr(one, "targets", None) or [target for target in [getattr(one, "target", None)] if target is not None]
        return next(filter(None, map(self.stored, targets)), None)

    def stored(self, target):
        if isinstance(target, (ast.Tuple, ast.List)):
            return next(filter(None, map(self.stored, target.elts)), None)
        if isinstance(target, ast.Subscript):
            target = target.value
        elif isinstance(target, ast.Name):
            is_test = target.id in self.names or target.id.startswith("pytest_") and not self.libraries
            return f"binds {target.id}" if is_test else None
        dotted = self.dotted(target)
        is_tool = any(dotted == tool or dotted.startswith(tool + ".") for tool in STORED if tool not in self.libraries)
        is_test = set(dotted.split(".")) & self.names
        return f"stores into {dotted}" if is_tool or is_test else None

    def of_one_module(self, node):
        """The parts of what asks `sys.modules` for this file's module, or for one by a name that leads to no tool."""
        for one in ast.walk(node):
            if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load):
                asked, key = one.value, one.slice
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "get" and one.args:
                asked, key = one.func.value, one.args[0]
            elif isinstance(one, ast.Compare) and isinstance(one.ops[0], (ast.In, ast.NotIn)):
                asked, key = one.comparators[0], one.left
            else:
                continue
            key = key.value if type(key).__name__ == "Index" else key  # CPython 3.8
            is_own = isinstance(key, ast.Name) and key.id == "__name__"
            is_plain = isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.split(".")[0] not in NOT_BY_NAME
            if self.dotted(asked) == "sys.modules" and (is_own or is_plain):
                yield id(asked)
                yield id(getattr(one, "func", None))

    def within(self, node):
        size = numbers = 0
        passed = set(self.of_one_module(node))
        for one in ast.walk(node):
            if isinstance(one, ast.Attribute) and id(one) not in passed and (one.attr in ATTRIBUTES or self.leads(self.dotted(one))):
                return f"reaches {self.dotted(one) or one.attr}"
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
                is_code = one.id in ("exec", "eval", "compile", "__builtins__", "__loader__", "__spec__") and one.id not in self.defined
                if is_code or self.leads(self.imports.get(one.id, "")):
                    return f"uses {one.id}"
                if one.id in self.names and "test" in one.id.lower():
                    return f"uses {one.id} as a value"
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in ("globals", "__import__") and not one.args[:1]:
                return f"uses {one.func.id}()"
            value = getattr(one, "value", None) if isinstance(one, ast.Constant) else None
            if isinstance(value, (str, bytes)):
                size += len(value)
                text = value if isinstance(value, str) else ""
                is_tool = not self.libraries and (text.startswith(("_pytest.", "pytest_")) or text in ("_pytest", "pluggy"))
                is_name = text in ATTRIBUTES or text in self.names and "test" in text.lower() or is_tool
                if is_name or text.startswith("/proc/") and text not in ("/proc/self/status", "/proc/cpuinfo", "/proc/meminfo"):
                    return f"names {text[:80]}"
            numbers += isinstance(value, (int, float)) and not isinstance(value, bool)
        if size > MOST_TEXT or numbers > MOST_NUMBERS:
            return f"{size} bytes of text and {numbers} numbers in a statement"
        return None

    def shadowed(self, outside):
        """A name that the test takes from outside the repository means something else here."""
        for name, meant in outside.items():
            meant = meant or f"builtins.{name}"
            here = self.imports.get(name)
            is_same = here is None or here == meant or here.rpartition(".")[2] == meant.rpartition(".")[2]
            if name in self.defined and (not is_same or here is None or self.is_defined(name)):
                return f"{name} is not {meant}"
        return None

    def is_defined(self, name):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return last(self.module.body, name, kinds) is not None


def hide(tree, endings):
    """Takes the repository's code out of its tree, and the history that has it; gives the names of its modules."""
    shutil.rmtree(tree / ".git", ignore_errors=True)
    hidden = set()
    for folder, _, names in os.walk(tree):
        for name in names:
            if name.rpartition(".")[2].lower() in endings:
                hidden |= names_of(os.path.relpath(os.path.join(folder, name), tree))
                os.unlink(os.path.join(folder, name))
    return hidden


def remove(place):
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif place.is_symlink() or place.exists():
        place.unlink()


def status_of(process):
    """The parent of a process, and when it started, in ticks."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), int(fields[19])


def holds_container(parent, started, first):
    """Whether the container ends with this process: its first one, which started at `first`, began it at once and waits for it,
    as the shell of `sh -c "sleep infinity"` does."""
    return parent == 1 and started - first <= AT_ONCE * os.sysconf("SC_CLK_TCK")


def clean_container(tree):
    """Takes away what somebody may have left who worked here: processes of the tree or of its Python, and what Python runs as it
    starts. Only what a package says that it has stays."""
    mine, one = set(), os.getpid()
    while one > 1:
        mine.add(one)
        one = status_of(one)[0]
    python, first = os.path.realpath(sys.executable), status_of(1)[1]
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            cwd, program = os.readlink(f"/proc/{name}/cwd"), os.readlink(f"/proc/{name}/exe")
            is_left = program == python or cwd.startswith(str(tree)) and not holds_container(*status_of(name), first)
            if is_left and int(name) > 1 and int(name) not in mine:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue
    prefix = Path(sys.executable).parent.parent
    for site in prefix.glob("lib/python3*/site-packages"):
        records = "".join(record.read_text(errors="replace") for record in site.glob("*.dist-info/RECORD"))
        for place in [*site.glob("*.pth"), site / "sitecustomize.py", site / "usercustomize.py"]:
            if f"{place.name}," not in records and not leads_into(place, tree):
                remove(place)


def leads_into(place, tree):
    """Whether a file of paths does nothing but put the tree, or folders of it, on the path: the image's own one, or that of an old
    setuptools."""
    try:
        is_known = place.name in ("tree.pth", "easy-install.pth") and not place.is_symlink()
        lines = place.read_text().split("\n") if is_known else []
    except (OSError, ValueError):
        return False
    lines = [line.strip() for line in lines if line.strip()]
    root = os.path.realpath(tree) + "/"

    def is_within(line):
        return os.path.isabs(line) and os.path.isdir(line) and ".egg-info" not in line and (os.path.realpath(line) + "/").startswith(root)

    return bool(lines) and all(map(is_within, lines))


def reset(tree):
    """Makes the tree what its one commit has. Where the commit is gone, somebody took it away, and the tree is judged as it is."""
    if (tree / ".git").is_dir():
        git = ["git", "-C", str(tree), "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", f"safe.directory={tree}"]
        keep_versions(tree)
        for words in (["checkout", "-q", "-f", "HEAD", "--", "."], ["clean", "-q", "-f", "-f", "-d", "-x", "-e", "*.egg-info"]):
            try:
                subprocess.run([*git, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            except OSError as error:
                raise MachineFault(f"git cannot be started: {error}") from error


def keep_versions(tree):
    """Of what an old setuptools keeps in the tree about a project: its name and version stay, which can be asked for; entry points,
    which pytest would follow, go."""
    for folder, folders, names in os.walk(tree):
        found = [name for name in [*folders, *names] if name.endswith(".egg-info")]
        folders[:] = [name for name in folders if name not in found and name != ".git"]
        for place in (Path(folder, name) for name in found):
            is_folder = place.is_dir() and not place.is_symlink()
            for one in list(place.iterdir()) if is_folder else [place]:
                about = b""
                if one.name == "PKG-INFO" and not one.is_symlink() and one.is_file():
                    with one.open("rb") as file:
                        about = file.read(LARGEST_ANSWER)
                remove(one)
                kept = [line for line in about.decode(errors="replace").split("\n") if line.startswith(KEPT)]
                if kept:
                    one.write_text("\n".join(kept) + "\n")


def lay(tree, before, folder):
    """Lays files over the tree: true is a file to put, false one to take away."""
    for path, is_put in before.items():
        target = tree / path
        remove(target)
        if is_put:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, target)


def handed_in(file):
    """The text of a regular file that is not too large; the reason where there is none."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None, f"there is no {file.name}"
    # A folder cannot be opened as a file.
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
        os.close(handle)
        return None, f"{file.name} is not a file of at most {LARGEST_FILE} bytes"
    with os.fdopen(handle, "rb") as opened:
        text = opened.read()
    try:
        ast.parse(text)
        return text.decode("utf-8-sig"), None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return None, f"{file.name} cannot be read: {error}"


def opened(tree, path, flags):
    """A file of the tree. No link on the way to it is followed."""
    *folders, name = path.split("/")
    folder = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for one in folders:
            deeper = os.open(one, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
    return os.fdopen(handle, "rb" if flags == os.O_RDONLY else "wb")


def inside(tree, path):
    """Where the links of a path lead to, within the tree."""
    root, found = os.path.realpath(tree), os.path.realpath(os.path.join(tree, path))
    if os.path.commonpath([root, found]) != root or found == root:
        raise OSError("%s leads out of the tree" % path)
    return os.path.relpath(found, root)


def whole(stream):
    """What came out, as far as that is looked at, and the hash of all of it; none of what is longer than anything that is cut."""
    stream.seek(0)
    data = stream.read(LARGEST_ANSWER)
    if os.fstat(stream.fileno()).st_size > LARGEST_HASHED:
        return data, None
    digest = hashlib.sha256(data)
    for part in iter(lambda: stream.read(1 << 20), b""):
        digest.update(part)
    return data, digest.hexdigest()


class Court:
    """Where the file runs: a tree, a user and a scratch folder."""

    def __init__(self, task):
        self.task, self.tree = task, Path(task["workdir"])
        self.user = task["user"] if os.geteuid() == 0 else None
        self.place = Path(tempfile.mkdtemp(dir=task["scratch"]))
        self.place.chmod(0o711)
        shutil.copyfile(__file__, self.place / "judge.py")
        (self.place / "judge.py").chmod(0o644)
        self.scratch = self.place / "scratch"
        self.kept = self.place / "kept"
        self.kept.mkdir(mode=0o700)
        shutil.copytree(self.tree, self.kept / "tree", symlinks=True)
        self.give(self.tree)
        self.known = self.listing()

    def listing(self):
        """Whatever is in the tree, with what changes when somebody changes it."""
        found = {}
        for folder, folders, names in os.walk(self.tree):
            for name in [*folders, *names]:
                place = os.path.join(folder, name)
                about = os.lstat(place)
                is_folder = stat.S_ISDIR(about.st_mode)
                found[place] = (about.st_ino, about.st_mode) if is_folder else (about.st_ino, about.st_mode, about.st_ctime_ns)
        return found

    def restore(self):
        """Makes tree and scratch folder what they were before the first run."""
        now = self.listing()
        for place in sorted(set(now) - set(self.known), reverse=True):
            remove(Path(place))
        if any(now.get(place) != about for place, about in self.known.items()):
            for one in list(self.tree.iterdir()):
                remove(one)
            shutil.copytree(self.kept / "tree", self.tree, symlinks=True, dirs_exist_ok=True)
            self.give(self.tree)
            self.known = self.listing()
        remove(self.scratch)
        self.scratch.mkdir(mode=0o700)
        self.give(self.scratch)
        for place in ("/tmp", "/var/tmp", "/dev/shm") if self.user is not None else ():
            for one in Path(place).iterdir() if os.path.isdir(place) else ():
                if one.lstat().st_uid == self.user:
                    remove(one)

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

    def spawn(self, arguments, seconds, said, asked=b"", folder=None, variables=(), output=None):
        """The exit code, and what came out unless that has a place; none where it took too long."""
        task = self.task
        foreign = ("PYTHON", "PYTEST", "COV", "LD_PRELOAD", "LD_AUDIT")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment.update(task["variables"], PYTEST_ADDOPTS=" ".join(task["options"]))
        environment.update(HOME=str(self.scratch), TMPDIR=str(self.scratch))
        environment.update(variables)
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as question:
            question.write(asked)
            question.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-s", *arguments],
                cwd=folder or self.tree, env=environment, stdin=question, stdout=output or answer, stderr=said, preexec_fn=self.enter,
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
                self.end(process.pid)
            answer.seek(0)
            return code, answer.read(LARGEST_ANSWER)

    def command(self, text, given):
        """What a text shows as a command that is given this."""
        target, state = self.tree / self.task["submission"], tree_state()
        self.restore()
        remove(target)
        for path, content in {self.task["submission"]: text, **given["files"]}.items():
            with opened(self.tree, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                file.write(content.encode())
                file.flush()
                os.utime(file.fileno(), (1_600_000_000, 1_600_000_000))
                if self.user is not None:
                    os.fchown(file.fileno(), self.user, self.user)
        asked = (given["stdin"] or "").encode()
        if given["stdin_file"] is not None:
            with opened(self.tree, inside(self.tree, given["stdin_file"]), os.O_RDONLY) as file:
                asked = file.read()
        folder = self.tree / given["cwd"]
        before = state["state"](str(self.tree))
        for path in given["files"]:
            # As where it was found out: what says something else has been changed.
            before[path] = ["file"]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            arguments = [os.path.relpath(target, folder), *given["arguments"]]
            variables = {**CONDITIONS, **given["env"]}
            status, _ = self.spawn(arguments, self.task["seconds"], errors, asked, folder, variables, output)
            streams = {"stdout": whole(output), "stderr": whole(errors)}
        watched = [re.compile(one) for one in given["watched"]]
        changed = state["changes"](str(self.tree), before)
        counted = [one for one in changed if not watched or any(glob.search(one["path"]) for glob in watched)]
        shown = {name: data.decode("utf-8", "backslashreplace") for name, (data, _) in streams.items()}
        hashes = {name: sha256 for name, (_, sha256) in streams.items()}
        return {"status": status, **shown, "sha256": hashes, "files": counted}

    def outcomes(self, text):
        """What the cases of a text show, and what it printed."""
        target, seen, said = self.tree / self.task["submission"], {}, b""
        for words in self.task["commands"]:
            self.restore()
            target.write_text(text)
            os.utime(target, (1_600_000_000, 1_600_000_000))
            if self.user is not None:
                os.chown(target, self.user, self.user)
            nonce = os.urandom(16).hex()
            with tempfile.TemporaryFile() as output:
                # `python -m pytest …`: what is behind it is run by this script, where its outcomes can be seen.
                arguments = [str(self.place / "judge.py"), "--run", *words[3:]]
                code, answer = self.spawn(arguments, self.task["seconds"], output, nonce.encode() + b"\n")
                if code is None:
                    said += f"not done after {self.task['seconds']} seconds\n".encode()
                output.seek(max(0, output.seek(0, os.SEEK_END) - 20_000))
                said += output.read()
            seen.update(self.answer(nonce, answer) if code == 0 else {})
        return seen, said.decode(errors="replace")

    @staticmethod
    def answer(nonce, answer):
        """Outcome, exception and text by case; nothing where they are not what the script writes."""
        try:
            said, code, seen = json.loads(answer)
        except (ValueError, TypeError, RecursionError):
            return {}
        is_right = isinstance(seen, dict) and all(
            isinstance(one, list) and len(one) == 3 and isinstance(one[0], str) and one[0] in WORST and isinstance(one[2], str)
            for one in seen.values()
        )
        if not is_right or said != nonce:
            return {}
        fails = any(one[0] in ("failed", "error") for one in seen.values())
        return seen if code == int(fails) else {}


def difference(cases, seen, place):
    """The first case that does not show what it shows in the repository; none where all do."""
    left = {name.partition("::")[2]: one for name, one in seen.items()}
    for case in cases:
        name = located(case["case"], place)
        outcome, raised, text = left.pop(name, ["missing", None, ""])
        own = raised[len("concise.") :] if raised and raised.startswith("concise.") else raised
        if outcome != case["outcome"]:
            return f"{name}: {outcome} and not {case['outcome']}"
        if own != case.get("exception"):
            return f"{name}: {own} and not {case.get('exception')}"
        if case.get("message") and case["message"] not in text:
            return f"{name}: says something else"
    return f"{min(left)}: not expected" if left else None


# The conditions in which it was found out what commands show.
CONDITIONS = {
    "PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "80", "LINES": "24",
}  # fmt: skip
# What replaces what may differ in a text, what may be in its place, and how long that is at most: gistmill's list, held by its tests.
CLOCK, MONTH = r"\d{2}:\d{2}:\d{2}", "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
FOLDER = r"""(?:/[^\s/"'`()\[\]{},;:=|*?<>]+)+"""
TIMES = (
    rf"\d{{2}}/{MONTH}/\d{{4}}(?: {CLOCK}|:{CLOCK} [+-]\d{{4}})",
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}[T ])?{CLOCK}(?:[.,]\d{{1,9}})?(?: ?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?",
    rf"\d{{4}} {CLOCK}\.\d{{6}}",
    rf"\d{{6}} {CLOCK}",
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{{2}} {MONTH} \d{{4}} {CLOCK} GMT",
)
MARKS = {
    "0x…": (r"0x[0-9a-fA-F]{5,16}", 18),
    "…s": (r"\d+\.\d+s(?: \(\d+:\d\d:\d\d\))?", 40),
    "<mount>": (r"\d+ \d+ \d+:\d+ /\S*", 600),
    "<time>": ("|".join(TIMES), 48),
    "<pid>": (r"\d+", 10),
    "<thread>": (r" *\d+", 24),
    "<port>": (r"\d{4,5}", 5),
    "<python>": (FOLDER, 600),
    "<tmp>": (FOLDER, 600),
    "<user>": (r"[\w.-]+", 64),
    "<file>": (r"""[^\s"'`()\[\]{},;:=|*?]+\.py(?:(?:", line |:)\d+)?""", 600),
    "<module>": (r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", 300),
}
MARKS = {name: (re.compile(pattern), longest) for name, (pattern, longest) in MARKS.items()}
MARK = re.compile("|".join(map(re.escape, MARKS)))
CUT = "\n[cut here; sha256 of all bytes: "


def fits(expected, text, place, sha256=None):
    """Whether a text is what was expected. Where that is cut the hash of all decides; where it has marks too, how the text begins."""
    head, cut, said = expected.partition(CUT) if sha256 else (expected, "", "")
    known = {name: place[name] for name in ("<root>", "<venv>") if name in place}
    if cut and not MARK.search(head) and not any(name in head for name in known):
        return said.rstrip("]\n") == sha256
    lines, seen = head.split("\n"), text.split("\n")
    if len(lines) > len(seen) or (not cut and len(lines) < len(seen)):
        return False
    if cut:
        # The last word may be a part of one.
        lines[-1] = lines[-1][: lines[-1].rfind(" ") + 1]
    last = len(lines) - 1
    return all(fits_line(line, seen[at], known, bool(cut) and at == last) for at, line in enumerate(lines))


def fits_line(expected, line, known, is_begin):
    """Whether a line is what was expected. A mark takes the least that it may, and what it took is not looked at again."""
    for name, path in known.items():
        expected, line = expected.replace(name, path), line.replace(name, path)
    marks = MARK.findall(expected)
    first, *rest = MARK.split(expected)
    if not line.startswith(first):
        return False
    at = len(first)
    for number, (mark, literal) in enumerate(zip(marks, rest), 1):
        is_last = number == len(marks) and not is_begin
        at = after_mark(mark, literal, line, at, is_last)
        if at is None:
            return False
    return is_begin or at == len(line)


def after_mark(mark, literal, line, at, is_last):
    """Where a line goes on after what stands for a mark and the text that follows; none where it is something else."""
    pattern, longest = MARKS[mark]
    longest = max(longest, len(mark))

    def is_it(end):
        return line[at:end] == mark or pattern.fullmatch(line, at, end) is not None

    if is_last:
        end = len(line) - len(literal)
        return len(line) if at <= end <= at + longest and line.endswith(literal) and is_it(end) else None
    if not literal:
        found = pattern.match(line, at, at + longest)
        return at + len(mark) if line.startswith(mark, at) else found and found.end()
    end = line.find(literal, at, at + longest + len(literal))
    while end >= 0:
        if is_it(end):
            return end + len(literal)
        end = line.find(literal, end + 1, at + longest + len(literal))
    return None


def other_files(expected, found, place):
    """The first file that is not left as it was expected; none where all are."""
    found = {one["path"]: one for one in found}
    for one in expected:
        other = found.pop(one["path"], None)
        if other is None:
            return f"{one['path']} is not {one['change']}"
        plain = {name: value for name, value in one.items() if name != "text"}
        if plain != {name: value for name, value in other.items() if name != "text"}:
            return f"{one['path']} is another kind of file"
        if ("text" in one) != ("text" in other) or not fits(one.get("text", ""), other.get("text", ""), place):
            return f"{one['path']} says something else"
    return f"{min(found)} is {found[min(found)]['change']}" if found else None


def other_than(shows, seen, place):
    """What a run shows that is not what it must show; none where it shows that."""
    if seen["status"] != shows["status"]:
        return f"status {seen['status']} and not {shows['status']}"
    for stream in ("stdout", "stderr"):
        if not fits(shows[stream], seen[stream], place, seen["sha256"][stream]):
            return f"something else on {stream}"
    return other_files(shows["files"], seen["files"], place)


def judge_command(court, task, text, place, report):
    """Runs a file as the command, and with other input; gives what is wrong."""
    runs, wrong = list(task["runs"]), []
    random.SystemRandom().shuffle(runs)
    for one in runs:
        if wrong and one["kind"] is not None:
            continue
        seen = court.command(text, one)
        differs = other_than(one["shows"], seen, place)
        if one["kind"] is None:
            (name,) = report["expected"]
            report["seen"] = {name: "failed" if differs else report["expected"][name]}
            report["output"] = (seen["stdout"] + seen["stderr"])[-20_000:]
        if differs:
            given = "as it was" if one["kind"] is None else f"with other input ({one['kind']})"
            wrong.append(f"{given} it shows {differs}")
    return wrong


def located(name, place):
    for mark, path in place.items():
        name = name.replace(mark, path)
    return name


def judge(task, file, container):
    tree = Path(task["workdir"])
    if not tree.is_dir():
        raise MachineFault(f"there is no tree at {tree}")
    place = {"<root>": str(tree), "<venv>": str(Path(sys.executable).parent.parent)}
    expected = {located(name, place): outcome for name, outcome in task["outcomes"].items()}
    report = {"instance_id": task["instance_id"], "expected": expected, "seen": {}, "output": "", "why": None}
    text, why = handed_in(file)
    for test in task["tests"] if why is None else []:
        why = why or objection(tree, task, text, test)
    if task.get("runs") and why is None:
        why = strict(tree, task, text, {"name": NO_TEST, "defined_as": NO_TEST, "outside": {}})
    if why is not None:
        return {**report, "why": why}
    if container and os.geteuid() == 0:
        clean_container(tree)
    if task.get("reset"):
        reset(tree)
    hidden = hide(tree, set(task["hidden"]))
    remove(tree / task["submission"])
    lay(tree, task["before"], Path(__file__).parent / "before")
    court = Court(task)
    if hidden:
        (court.place / HIDDEN).write_text(json.dumps(sorted(hidden)))
        (court.place / HIDDEN).chmod(0o644)
    court.restore()
    if task.get("runs"):
        wrong = judge_command(court, task, text, place, report)
        shutil.rmtree(court.place, ignore_errors=True)
        return {**report, "why": "; ".join(wrong[:3]) or None}
    with tempfile.TemporaryFile() as output:
        if court.spawn(["-c", "import pytest"], 120, output)[0] != 0:
            raise MachineFault("pytest cannot be started here")
    runs = runs_of(text, task["tests"])
    # All of one size: what is behind the last line is no part of any.
    size = max(len(one[0].encode()) for one in runs) + 1
    random.SystemRandom().shuffle(runs)
    wrong = []
    for one, what, cases in runs:
        if wrong and what is not None:
            continue
        seen, said = court.outcomes(one + "\n" * (size - len(one.encode())))
        if what is None:
            report["seen"], report["output"] = {name: case[0] for name, case in seen.items()}, said
        elif cases is None:
            wrong += [f"{name} passes although its test {what}" for name in seen if seen[name][0] == "passed"]
        else:
            differs = difference(cases, seen, place)
            differs = differs and (f"{differs} (not done in time)" if "not done after" in said else differs)
            wrong += [f"its test is not what the original is under a variant ({what}): {differs}"] if differs else []
    shutil.rmtree(court.place, ignore_errors=True)
    return {**report, "why": "; ".join(wrong[:3]) or None}


def tree_state():
    """What says which files of a tree are changed."""
    return runpy.run_path(str(Path(__file__).parent / "tree_state.py"))


def objection(tree, task, text, test):
    """What is wrong with a file before anything of it runs; none where nothing is."""
    if not test["variants"]:
        why = is_original(text, test)
        if why is not None:
            return why
    elif definition(ast.parse(text), test["defined_as"]) is None:
        return f"it does not define {test['name']}"
    return strict(tree, task, text, test)


def strict(tree, task, text, test):
    """What a file does that no file of the repository does in the same words; none where there is nothing."""
    try:
        return Strict(ast.parse(text), test, own_statements(tree, task["code"])).first(test["outside"])
    except RecursionError:
        return "it is nested too deep"


def runs_of(text, tests):
    """Texts that are run, with what was done to each (none: it is judged as it is), and what it must show where that is known."""
    plain, runs = text, []
    # Names of what was handed in, before a test takes the place of its own.
    names = {test["defined_as"]: names_of_file(text, test["defined_as"]) for test in tests if test["variants"]}
    for test in tests:
        if test["variants"]:
            plain = with_test(plain, test["defined_as"], test["text"], names[test["defined_as"]])
    for test in tests:
        for one in test["variants"]:
            edited = with_test(plain, test["defined_as"], one["text"], names[test["defined_as"]])
            runs.append((edited, one["kind"], one["cases"]))
        if not test["variants"] and definition(ast.parse(plain), test["name"]):
            raised = random.SystemRandom().sample(RAISED, 3)
            runs += [(with_exception(plain, test["name"], one), f"raises {one}", None) for one in raised]
    return [*runs, (plain, None, None)]


def write(folder, name, value):
    """A new file, whatever somebody has left under its names."""
    aside = folder / f".{name}"
    for place in (aside, folder / name):
        remove(place)
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w") as file:
        json.dump(value, file, indent=1)
    aside.replace(folder / name)


def main(task_file, file, folder, log, container):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("reward.json", "reward.txt", "reward-details.json"):
        remove(folder / name)
    if os.geteuid() == 0:
        for place in (folder, Path(task_file).parent if container else None):
            if place is not None:
                os.chmod(place, 0o700)
        os.chmod(task_file, 0o600)
    task = json.loads(Path(task_file).read_text())
    report = judge(task, Path(file), container)
    expected, seen, why = report["expected"], report["seen"], report["why"]
    right = 0 if why else sum(seen.get(name) == outcome for name, outcome in expected.items())
    is_exact = task.get("exact", True)
    whole = int(right == len(expected) and (set(seen) == set(expected) or not is_exact))
    reward = whole if task["reward"] == "all" else right / len(expected)
    write(folder, "reward-details.json", {**report, "reward": reward, "cases_right": right / len(expected)})
    write(folder, "reward.json", {"reward": reward})
    print(f"{report['instance_id']}: {right} of {len(expected)} cases end as they must, reward {reward}; {why or 'no objection'}")
    if log:
        for name, outcome in expected.items():
            ends = why is None and seen.get(name) == outcome and set(seen) == set(expected)
            print("PASSED" if ends and outcome == "passed" else "FAILED", name)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--run":
        run(sys.argv[2:])
    given = sys.argv[1:]
    options = [given.pop(given.index(one)) if one in given[:2] else None for one in ("--container", "--log")]
    if len(given) != 3:
        sys.exit(__doc__)
    try:
        main(*given, log=bool(options[1]), container=bool(options[0]))
    except (MachineFault, OSError, KeyError) as fault:
        print(f"the machine's fault, nothing is judged: {fault!r}", file=sys.stderr)
        sys.exit(3)
