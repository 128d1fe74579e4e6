#!/usr/bin/env python3
"""Reference arithmetic for docs/scoring.md (standard library only, CPython 3.9+).

Not the product: an independent oracle. It decides units, existence, execution, Test F1 and injection as that page
defines them, with Python's own parser, so that the numbers in the examples were computed and not guessed.
"""

import ast
import collections
import copy
import io
import sys
import tokenize

VALID_CONTROL = ("if", "elif", "else")


class Unit:
    """A logical line: its type, block path, own lines and keys."""

    def __init__(self, type, path, first, last, kind="", keys=(), body=(), header=None, placeholder=False, name="", stripped=None):
        self.type, self.path, self.first, self.last = type, path, first, last
        self.kind, self.keys, self.body, self.header = kind, frozenset(keys), body, header
        self.placeholder, self.name, self.file = placeholder, name, ""
        self.stripped = self.keys if stripped is None else stripped

    def __repr__(self):
        return "<%s %s %s:%d-%d>" % (self.type, self.kind, ".".join(name for _, name in self.path), self.first, self.last)


class Names:
    """Which dotted names are modules of the repository, and what a file binds to them."""

    def __init__(self, modules=(), package=""):
        self.modules = set(modules)
        self.package = package
        self.alias = {}

    def read(self, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    if a.asname and a.name in self.modules:
                        self.alias[a.asname] = a.name
                    elif not a.asname and a.name.split(".")[0] in self.modules:
                        self.alias[a.name.split(".")[0]] = a.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom):
                base = self.absolute(node)
                for a in node.names:
                    full = base + "." + a.name if base else a.name
                    if full in self.modules:
                        self.alias[a.asname or a.name] = full
        return self

    def owns(self, dotted):
        parts = dotted.split(".")
        return any(".".join(parts[: n + 1]) in self.modules for n in range(len(parts)))

    def is_own(self, statement, alias):
        """Whether a name of an import statement comes from the repository."""
        if isinstance(statement, ast.Import):
            return self.owns(alias.name)
        base = self.absolute(statement)
        full = base + "." + alias.name if base else alias.name
        return statement.level > 0 or self.owns(base) or full in self.modules

    def absolute(self, node):
        if not node.level:
            return node.module or ""
        parts = self.package.split(".") if self.package else []
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join(parts + ([node.module] if node.module else []))

    def strip(self, node):
        """The node with prefixes that are repository modules removed."""
        names = self

        class Strip(ast.NodeTransformer):
            def visit_Attribute(self, attribute):
                chain, at = [], attribute
                while isinstance(at, ast.Attribute):
                    chain.append(at.attr)
                    at = at.value
                if isinstance(at, ast.Name) and at.id in names.alias:
                    chain.reverse()
                    module, used = names.alias[at.id], 0
                    while used < len(chain) - 1 and module + "." + chain[used] in names.modules:
                        module += "." + chain[used]
                        used += 1
                    if module + "." + chain[used] in names.modules and used == len(chain) - 1:
                        return attribute  # a module as such
                    rest = ast.Name(id=chain[used], ctx=ast.Load())
                    for attr in chain[used + 1 :]:
                        rest = ast.Attribute(value=rest, attr=attr, ctx=ast.Load())
                    return rest
                return self.generic_visit(attribute)

        return Strip().visit(copy.deepcopy(node))


def dump(node):
    node = copy.deepcopy(node)
    for child in ast.walk(node):
        if hasattr(child, "ctx"):
            child.ctx = None
        if isinstance(child, ast.Constant):
            child.kind = None
    return ast.dump(node)


def forms(node, names):
    return {dump(node), dump(names.strip(node))}


def param_forms(argument, default, names):
    def one(strip):
        a = names.strip(argument) if strip else argument
        d = None if default is None else dump(names.strip(default) if strip else default)
        return (a.arg, None if a.annotation is None else dump(a.annotation), d)

    return frozenset({one(False), one(True)})


def header_of(node, names):
    def dotted(decorator):
        return decorator.func if isinstance(decorator, ast.Call) else decorator

    header = {"kind": type(node).__name__, "decorators": [frozenset(forms(dotted(d), names)) for d in node.decorator_list]}
    if isinstance(node, ast.ClassDef):
        header["bases"] = [frozenset(forms(b, names)) for b in node.bases] + [
            frozenset((k.arg, f) for f in forms(k.value, names)) for k in node.keywords
        ]
    else:
        a = node.args
        plain = list(getattr(a, "posonlyargs", [])) + a.args
        defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults)
        header["params"] = [param_forms(x, d, names) for x, d in zip(plain, defaults)]
        header["params"] += [param_forms(x, d, names) for x, d in zip(a.kwonlyargs, a.kw_defaults)]
        header["params"] += [param_forms(x, None, names) for x in (a.vararg, a.kwarg) if x]
        header["returns"] = None if node.returns is None else frozenset(forms(node.returns, names))
    return header


def is_text(s):
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)


def is_placeholder(s):
    return (
        isinstance(s, (ast.Pass, ast.Global, ast.Nonlocal))
        or isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and not isinstance(s.value.value, str)
        or isinstance(s, ast.AnnAssign) and s.value is None
    )


def units_of(text, names=None):
    """All logical lines of a file, in order. Raises SyntaxError."""
    tree = ast.parse(text)
    names = (names or Names()).read(tree)
    lines = text.split("\n")
    found = []

    def before(body, default):
        return max(default, min(first_line(s) for s in body) - 1) if body else default

    def first_line(s):
        return min([s.lineno] + [d.lineno for d in getattr(s, "decorator_list", [])])

    def keys_of_body(body):
        out = set()
        for s in body:
            if is_text(s) or isinstance(s, ast.Pass):
                continue
            out |= forms(s, names)
        return frozenset(out)

    def visit(body, path):
        for s in body:
            if is_text(s):
                found.append(Unit("comment", path, s.lineno, s.end_lineno, "docstring"))
            elif isinstance(s, ast.Import):
                for a in s.names:
                    found.append(Unit("import", path, s.lineno, s.end_lineno, keys={("import", a.name, a.asname)}))
            elif isinstance(s, ast.ImportFrom):
                for a in s.names:
                    keys = {("from", "." * s.level + (s.module or ""), a.name, a.asname)}
                    keys.add(("from", names.absolute(s), a.name, a.asname))
                    whole = ("from", names.absolute(s), a.name, a.asname)
                    found.append(Unit("import", path, s.lineno, s.end_lineno, keys=keys, stripped=whole))
            elif isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                kind = "class" if isinstance(s, ast.ClassDef) else "def"
                inner = path + ((kind, s.name),)
                found.append(Unit("definition", inner, first_line(s), before(s.body, s.lineno), kind, header=header_of(s, names), name=s.name))
                visit(s.body, inner)
            elif isinstance(s, ast.If):
                at, word = s, "if"
                while True:
                    found.append(Unit("control", path, at.lineno, before(at.body, at.lineno), word, forms(at.test, names), stripped=dump(names.strip(at.test))))
                    visit(at.body, path)
                    rest = at.orelse
                    if len(rest) == 1 and isinstance(rest[0], ast.If) and lines[rest[0].lineno - 1].lstrip().startswith("elif"):
                        at, word = rest[0], "elif"
                        continue
                    other(rest, path)
                    break
            elif isinstance(s, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)) or type(s).__name__ in ("TryStar", "Match"):
                found.append(Unit("control", path, s.lineno, before(getattr(s, "body", []), s.lineno), type(s).__name__.lower(), head(s), stripped=stripped_head(s)))
                visit(getattr(s, "body", []), path)
                for handler in getattr(s, "handlers", []):
                    found.append(Unit("control", path, handler.lineno, before(handler.body, handler.lineno), "except", {("except", f, handler.name) for f in (forms(handler.type, names) if handler.type else {None})}))
                    visit(handler.body, path)
                for case in getattr(s, "cases", []):
                    found.append(Unit("control", path, case.pattern.lineno, before(case.body, case.pattern.lineno), "case", case_keys(case)))
                    visit(case.body, path)
                other(getattr(s, "orelse", []), path)
                final = getattr(s, "finalbody", [])
                if final:
                    found.append(Unit("control", path, final[0].lineno - 1, final[0].lineno - 1, "finally", {"finally"}))
                    visit(final, path)
            else:
                found.append(Unit("executable", path, s.lineno, s.end_lineno, keys=forms(s, names), placeholder=is_placeholder(s), stripped=dump(names.strip(s))))

    def other(rest, path):
        if rest:
            found.append(Unit("control", path, first_line(rest[0]) - 1, first_line(rest[0]) - 1, "else", {"else"}, body=keys_of_body(rest)))
            visit(rest, path)

    def head(s):
        if isinstance(s, (ast.For, ast.AsyncFor)):
            return {(type(s).__name__, dump(s.target), f) for f in forms(s.iter, names)}
        if isinstance(s, ast.While):
            return {("While", f) for f in forms(s.test, names)}
        if isinstance(s, (ast.With, ast.AsyncWith)):
            return {(type(s).__name__,) + tuple(dump(i) for i in s.items), (type(s).__name__,) + tuple(dump(names.strip(i)) for i in s.items)}
        if type(s).__name__ == "Match":
            return {("Match", f) for f in forms(s.subject, names)}
        return {type(s).__name__}

    def stripped_head(s):
        if isinstance(s, (ast.For, ast.AsyncFor)):
            return dump(s.target), dump(names.strip(s.iter))
        if isinstance(s, ast.While):
            return dump(names.strip(s.test))
        if isinstance(s, (ast.With, ast.AsyncWith)):
            return tuple(dump(names.strip(i)) for i in s.items)
        if type(s).__name__ == "Match":
            return dump(names.strip(s.subject))
        return type(s).__name__

    def case_keys(case):
        shell = copy.deepcopy(case)
        shell.body = []
        return forms(shell, names)

    visit(tree.body, ())
    return found


# Existence.


class Block:
    def __init__(self, path, file):
        self.path, self.file, self.units, self.children = path, file, [], []


def blocks_of(units, file=""):
    """Top-level lines, and blocks as trees."""
    top, roots, stack = [], [], []
    for unit in units:
        if unit.type == "definition":
            while stack and stack[-1].path != unit.path[:-1]:
                stack.pop()
            block = Block(unit.path, file)
            (stack[-1].children if stack else roots).append(block)
            stack.append(block)
            block.units.append(unit)
            continue
        while stack and stack[-1].path != unit.path:
            stack.pop()
        (stack[-1].units if stack else top).append(unit)
    return top, roots


def counted(unit, control_flow=False):
    return unit.type != "comment" and (unit.type != "control" or unit.kind in VALID_CONTROL or control_flow)


def exists_in(unit, original, control_flow=False):
    """Whether a line exists in the original lines of its block."""
    if unit.type == "control":
        if unit.kind in ("if", "elif"):
            return any(o.type == "control" and o.kind in ("if", "elif") and o.keys & unit.keys for o in original)
        if unit.kind == "else":
            others = [o for o in original if o.type == "control" and o.kind == "else"]
            return bool(others) and (not unit.body or any(o.body & unit.body for o in others))
        return any(o.type == "control" and o.kind == unit.kind and o.keys & unit.keys for o in original)
    if unit.type == "definition":
        return any(o.type == "definition" and o.path == unit.path and same_header(unit.header, o.header) for o in original)
    return any(o.type == unit.type and o.keys & unit.keys for o in original)


def same_kind(one, other):
    """Lines that are looked for among each other."""
    if one.type != other.type or one.type != "control":
        return one.type == other.type
    return one.kind == other.kind or {one.kind, other.kind} <= {"if", "elif"}


def copies(unit, original, scope):
    """What the copies of a line have in common, and how many of them count: as many as the file has that has most."""
    if unit.type == "definition":
        return (scope, "definition"), 1
    same = [o for o in original if same_kind(unit, o)]
    if unit.kind == "else" and unit.type == "control":
        return (scope, "else"), most_in_a_file(same)
    kind = "if" if unit.kind == "elif" else unit.kind
    most = max([most_in_a_file([o for o in same if key in o.keys]) for key in unit.keys] or [0])
    return (scope, unit.type, kind if unit.type == "control" else "", unit.stripped), most


def most_in_a_file(units):
    return max(collections.Counter(o.file for o in units).values(), default=0)


def verdict(unit, original, scope, control_flow):
    return (unit, exists_in(unit, original, control_flow)) + copies(unit, original, scope)


def without_copies(verdicts):
    used, kept = collections.Counter(), []
    for unit, ok, group, most in verdicts:
        used[group] += ok
        kept.append((unit, ok and used[group] <= most))
    return kept


def same_header(mine, theirs):
    def within(one, all):
        return any(one & other for other in all)

    if mine["kind"] != theirs["kind"] or not all(within(d, theirs["decorators"]) for d in mine["decorators"]):
        return False
    if mine["kind"] == "ClassDef":
        return len(mine["bases"]) == len(theirs["bases"]) and all(within(b, theirs["bases"]) for b in mine["bases"])
    if mine["returns"] is not None and not (theirs["returns"] and mine["returns"] & theirs["returns"]):
        return False
    return all(within(p, theirs["params"]) for p in mine["params"])


def match(block, candidates, control_flow=False):
    """(number of lines that exist, verdicts) for the best candidate; children are matched within it."""
    best = None
    for other in sorted(candidates, key=lambda c: c.file):
        if other.path != block.path:
            continue
        verdicts = [verdict(u, other.units, id(other), control_flow) for u in block.units if counted(u, control_flow)]
        for child in block.children:
            verdicts += match(child, other.children, control_flow)
        score = sum(v[1] for v in verdicts)
        if best is None or score > best[0]:
            best = (score, verdicts)
    if best is None:
        verdicts = [(u, False, None, 0) for u in block.units if counted(u, control_flow)]
        for child in block.children:
            verdicts += match(child, [], control_flow)
        return verdicts
    return best[1]


def corpus(repository, modules=()):
    """`repository`: path -> text. Gives its top-level lines and its blocks."""
    tops, roots = [], []
    for file, text in sorted(repository.items()):
        package = file[: -len(".py")].replace("/", ".").rpartition(".")[0]
        try:
            units = units_of(text, Names(modules, package))
        except SyntaxError:
            continue
        for unit in units:
            unit.file = file
        top, some = blocks_of(units, file)
        tops += top
        roots += some
    return tops, roots


def existence(gist, repository, modules=(), control_flow=False):
    """`repository`: path -> text. Gives (existing, valid, verdicts)."""
    return existence_in(gist, corpus(repository, modules), modules, control_flow)


def existence_in(gist, originals, modules=(), control_flow=False):
    tops, roots = originals
    mine = Names(modules)
    mine.alias = {m: m for m in modules if "." not in m}
    top, blocks = blocks_of(units_of(gist, mine))
    verdicts = [verdict(u, tops, 0, control_flow) for u in top if counted(u, control_flow)]
    for block in blocks:
        verdicts += match(block, roots, control_flow)
    verdicts = without_copies(verdicts)
    return sum(ok for _, ok in verdicts), len(verdicts), verdicts


# Execution.


def execution(text, hit):
    """(executed, counted) of executable and import lines; `hit`: line numbers with a line event."""
    units = [u for u in units_of(text) if u.type in ("executable", "import") and not u.placeholder]
    ran = [u for u in units if any(line in hit for line in range(u.first, u.last + 1))]
    return len(ran), len(units)


def execution_statements(text, hit):
    """The other reading: every statement, definitions, control flow and docstrings included."""
    done = total = 0
    for s in ast.walk(ast.parse(text)):
        if isinstance(s, ast.stmt):
            total += 1
            last = header_last(s)
            done += not is_text(s) and any(line in hit for line in range(s.lineno, last + 1))
    return done, total


def header_last(s):
    """The last line of a statement's header: of the last thing that is evaluated in it."""
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
        a = s.args
        parts = list(getattr(a, "posonlyargs", [])) + a.args + a.kwonlyargs + [x for x in (a.vararg, a.kwarg) if x]
        parts += a.defaults + [d for d in a.kw_defaults if d]
        return max([s.lineno] + [p.end_lineno for p in parts + ([s.returns] if s.returns else [])])
    if isinstance(s, ast.ClassDef):
        return max([s.lineno] + [p.end_lineno for p in s.bases + [k.value for k in s.keywords]])
    if isinstance(s, (ast.For, ast.AsyncFor)):
        return s.iter.end_lineno
    if isinstance(s, (ast.While, ast.If)):
        return s.test.end_lineno
    if isinstance(s, (ast.With, ast.AsyncWith)):
        return max((i.optional_vars or i.context_expr).end_lineno for i in s.items)
    if type(s).__name__ == "Match":
        return s.subject.end_lineno
    return s.lineno if type(s).__name__ in ("Try", "TryStar") else s.end_lineno


def lines_hit(text, run):
    """Runs a file as `concise.py` and calls `run(namespace)`; gives the lines with a line event."""
    hit = set()

    def trace(frame, event, argument):
        if frame.f_code.co_filename != "concise.py":
            return None
        if event == "line":
            hit.add(frame.f_lineno)
        return trace

    code = compile(text, "concise.py", "exec", dont_inherit=True)
    space = {"__name__": "concise", "__file__": "concise.py"}
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, space)
        run(space)
    finally:
        sys.settrace(before)
    return hit


# Test F1.


def definition(tree, chain):
    """The last definition of `Class::function` in a module, control flow around it ignored."""

    def named(body, name):
        found = None
        for s in body:
            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found = s if s.name == name else found
            else:
                parts = getattr(s, "handlers", []) + getattr(s, "cases", [])
                inner = [b for part in parts for b in part.body]
                for body in (getattr(s, "body", []), inner, getattr(s, "orelse", []), getattr(s, "finalbody", [])):
                    found = named(body, name) or found
        return found

    at = tree
    for name in chain:
        at = named(at.body, name) if isinstance(at, (ast.Module, ast.ClassDef)) else None
    return at if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def test_lines(text, chain, names):
    """The lines of a test function as texts, repository imports left out; None where it is missing."""
    tree = ast.parse(text)
    names.read(tree)
    node = definition(tree, chain)
    if node is None:
        return None
    out = []
    own_locals = local_names(node)
    names.alias = {k: v for k, v in names.alias.items() if k not in own_locals}

    def strip(n):
        return dump(names.strip(n))

    def visit(body):
        for s in body:
            if is_text(s):
                continue
            if isinstance(s, (ast.Import, ast.ImportFrom)):
                for a in s.names:
                    if names.is_own(s, a):
                        continue
                    out.append(("import", getattr(s, "module", None), a.name, a.asname))
            elif isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                one(s)
            elif hasattr(s, "body") or type(s).__name__ == "Match":
                shell = copy.deepcopy(s)
                for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                    if hasattr(shell, field):
                        setattr(shell, field, [])
                out.append(strip(shell))
                visit(getattr(s, "body", []))
                for part in list(getattr(s, "handlers", [])) + list(getattr(s, "cases", [])):
                    shell = copy.deepcopy(part)
                    shell.body = []
                    out.append(strip(shell))
                    visit(part.body)
                rest = getattr(s, "orelse", [])
                if rest:
                    if not (isinstance(s, ast.If) and len(rest) == 1 and isinstance(rest[0], ast.If)):
                        out.append("else")
                    visit(rest)
                if getattr(s, "finalbody", []):
                    out.append("finally")
                    visit(s.finalbody)
            else:
                out.append(strip(s))

    def one(n):
        for decorator in n.decorator_list:
            out.append("@" + strip(decorator))
        shell = copy.deepcopy(n)
        shell.body, shell.decorator_list = [], []
        out.append(strip(shell))
        visit(n.body)

    one(node)
    return collections.Counter(out)


def test_f1(gist, original, chain, modules=()):
    mine, theirs = Names(modules), Names(modules)
    mine.alias = {m: m for m in modules if "." not in m}
    try:
        g = test_lines(gist, chain, mine)
    except SyntaxError:
        return 0.0
    o = test_lines(original, chain, theirs)
    if g is None:
        return 0.0
    return 2 * sum((g & o).values()) / (sum(g.values()) + sum(o.values()))


# Injection.


def bound_names(tree):
    """Names that a file binds in its module scope, control flow around them ignored."""
    names = set()

    class Walk(ast.NodeVisitor):
        def visit_FunctionDef(self, node):
            names.add(node.name)

        visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

        def visit_Lambda(self, node):
            pass

        def visit_comprehension(self, node):
            self.visit(node.iter)

        def visit_ExceptHandler(self, node):
            if getattr(node, "name", None) or getattr(node, "rest", None):
                names.add(getattr(node, "name", None) or node.rest)
            self.generic_visit(node)

        visit_MatchAs = visit_MatchStar = visit_MatchMapping = visit_ExceptHandler

        def visit_AnnAssign(self, node):
            if node.value is not None:
                self.visit(node.target)
                self.visit(node.value)

        def visit_AugAssign(self, node):
            self.visit(node.value)

        def visit_Import(self, node):
            names.update(a.asname or a.name.split(".")[0] for a in node.names)

        def visit_ImportFrom(self, node):
            names.update(a.asname or a.name for a in node.names)

        def visit_Name(self, node):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)

    Walk().visit(tree)
    return names


def local_names(node):
    """Parameters and names that a function binds in itself, imports left out."""
    names = set()
    for child in ast.walk(node):
        if isinstance(child, ast.arg):
            names.add(child.arg)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            names.add(child.id)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and child is not node:
            names.add(child.name)
        elif type(child).__name__ in ("ExceptHandler", "MatchAs", "MatchStar") and child.name:
            names.add(child.name)
        elif type(child).__name__ == "MatchMapping" and child.rest:
            names.add(child.rest)
    return names


def repository_froms(tree, names):
    """Local name -> original name, for `from <repository> import original as local` in this scope."""
    out, left = {}, list(tree.body)
    while left:
        node = left.pop(0)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            left += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                if names.is_own(node, a) and a.asname and a.asname != a.name and names.absolute(node) + "." + a.name not in names.modules:
                    out[a.asname] = a.name
    return out


def is_repository_import(s, names):
    return isinstance(s, (ast.Import, ast.ImportFrom)) and all(names.is_own(s, a) for a in s.names)


def canonical(node, names, renamed):
    """A definition with repository imports, module prefixes and docstrings removed, as text."""
    node = copy.deepcopy(node)

    class Clean(ast.NodeTransformer):
        def generic_visit(self, n):
            super().generic_visit(n)
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(n, field, None), list):
                    kept = [s for s in getattr(n, field) if not is_text(s) and not is_repository_import(s, names)]
                    for s in kept:
                        if isinstance(s, (ast.Import, ast.ImportFrom)):
                            s.names = [a for a in s.names if not names.is_own(s, a)]
                    kept = [s for s in kept if not isinstance(s, ast.Pass)]
                    setattr(n, field, kept)
            return n

        def visit_Name(self, n):
            n.id = renamed.get(n.id, n.id)
            return n

    return dump(Clean().visit(names.strip(node)))


def within_text(text):
    """Lines that begin inside a string."""
    found, open_ = set(), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "STRING":
            found.update(range(token.start[0] + 1, token.end[0] + 1))
        elif name == "FSTRING_START":
            open_.append(token.start[0])
        elif name == "FSTRING_END":
            found.update(range(open_.pop() + 1, token.end[0] + 1))
    return found


def inject(gist, original, chain, modules):
    """(text to evaluate, how): how is `equal`, `replaced`, `missing` or `unparsable`."""
    modules = set(modules)
    try:
        tree = ast.parse(gist)
    except SyntaxError:
        return None, "unparsable"
    node = definition(tree, chain)
    if node is None:
        return None, "missing"
    source = ast.parse(original)
    test = definition(source, chain)
    theirs = Names(modules).read(source)
    mine = Names(modules)
    mine.alias = {m: m for m in modules if "." not in m and m not in local_names(node)}
    locals_ = local_names(test)
    theirs.alias = {k: v for k, v in theirs.alias.items() if k not in locals_}
    of_module = {k: v for k, v in repository_froms(source, theirs).items() if k not in locals_}
    renamed = {k: v for k, v in repository_froms(test, theirs).items() if k not in locals_}
    renamed.update(of_module)
    taken = bound_names(source) | locals_
    renamed = {k: v for k, v in renamed.items() if v not in taken}
    own_renamed = {k: v for k, v in renamed.items() if k not in local_names(node)}
    if canonical(node, mine, own_renamed) == canonical(test, theirs, renamed):
        return gist, "equal"

    bound = bound_names(tree)
    lines = original.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()) + 1)
    data = original.encode()

    def offset(line, column):
        return starts[line - 1] + column

    edits = []

    class Adjust(ast.NodeVisitor):
        def visit_Attribute(self, attribute):
            chain_, at = [], attribute
            while isinstance(at, ast.Attribute):
                chain_.append(at)
                at = at.value
            if isinstance(at, ast.Name) and at.id in theirs.alias and at.id not in bound:
                chain_.reverse()
                module, used = theirs.alias[at.id], 0
                while used < len(chain_) - 1 and module + "." + chain_[used].attr in modules:
                    module += "." + chain_[used].attr
                    used += 1
                if module + "." + chain_[used].attr in modules:
                    return
                keep = next((k for k in range(used, -1, -1) if chain_[k].attr in bound), used)
                link = chain_[keep]
                head = offset(link.end_lineno, link.end_col_offset) - len(link.attr.encode())
                edits.append((offset(at.lineno, at.col_offset), head, b""))
                return
            self.generic_visit(attribute)

        def visit_Name(self, n):
            new = of_module.get(n.id) if n.id in renamed else None
            if new and n.id not in bound and new in bound:
                edits.append((offset(n.lineno, n.col_offset), offset(n.end_lineno, n.end_col_offset), new.encode()))

        def imports(self, s):
            if not any(theirs.is_own(s, a) for a in s.names):
                return
            made = []
            for a in s.names:
                local = a.asname or a.name
                if not theirs.is_own(s, a):
                    source = "from %s " % theirs.absolute(s) if isinstance(s, ast.ImportFrom) else ""
                    made.append("%simport %s%s" % (source, a.name, " as " + a.asname if local != a.name else ""))
                elif isinstance(s, ast.ImportFrom) and local not in bound and a.name in bound:
                    made.append("%s = %s" % (local, a.name))
            text = "; ".join(made) or "pass"
            edits.append((offset(s.lineno, s.col_offset), offset(s.end_lineno, s.end_col_offset), text.encode()))

        visit_Import = visit_ImportFrom = imports

    Adjust().visit(test)
    first = min([test.lineno] + [d.lineno for d in test.decorator_list])
    begin, end = offset(first, 0), offset(test.end_lineno, test.end_col_offset)
    rows = gist.split("\n")
    top = min([node.lineno] + [d.lineno for d in node.decorator_list]) - 1
    old, fresh = (row[: len(row) - len(row.lstrip())] for row in (lines[first - 1], rows[top]))
    for number in set(range(first, test.end_lineno + 1)) - within_text(original):
        here = offset(number, 0)
        if lines[number - 1].startswith(old) and lines[number - 1].strip() and not any(a < here < b for a, b, _ in edits):
            edits.append((here, here + len(old), fresh.encode()))
    out, at = b"", begin
    for start, stop, text in sorted(edits):
        out += data[at:start] + text
        at = stop
    new = (out + data[at:end]).decode()
    return "\n".join(rows[:top] + new.split("\n") + rows[node.end_lineno :]), "replaced"


def sabotage(evaluated, chain):
    """The evaluated file with a test that must fail: its body begins with a raise."""
    tree = ast.parse(evaluated)
    node = definition(tree, chain)
    first = next((s for s in node.body if not is_text(s)), None)
    rows = evaluated.split("\n")
    if first is None or first.lineno == node.lineno:
        row = node.body[0]
        text = rows[row.lineno - 1]
        rows[row.lineno - 1] = text[: row.col_offset] + "raise AssertionError('gistmill'); " + text[row.col_offset :]
        return "\n".join(rows)
    line = min([first.lineno] + [d.lineno for d in getattr(first, "decorator_list", [])])
    rows.insert(line - 1, " " * first.col_offset + "raise AssertionError('gistmill')")
    return "\n".join(rows)
