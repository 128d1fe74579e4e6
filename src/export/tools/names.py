"""Where names of the repository are defined and used, by its syntax. Nothing is run or imported."""

import ast
import os
import tokenize
from io import BytesIO

from common import DEFINITIONS, FUNCTIONS, Refused, count, cut, first_line, parse, read, say, show, walk

# Files that cannot be read and are named, in one answer.
MOST_NAMED = 10


def python_files(task):
    """Paths of the repository's Python files, sorted."""
    root = task["workdir"]
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            one for one in folders
            if not one.startswith(".") and not os.path.exists(os.path.join(folder, one, "pyvenv.cfg"))
        )  # fmt: skip
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith((".py", ".pyi")) and path != task["submission"]:
                yield path


def names(scope):
    return tuple(one.name for one in scope)


def ends_with(whole, part):
    return whole[-len(part) :] == part


class Module:
    """A parsed file, and what its names stand for."""

    def __init__(self, path, data):
        self.path = path
        nodes = list(walk(parse(data)))
        self.nodes = nodes
        self.lines = decoded(data)
        parts = tuple(path.rsplit(".", 1)[0].split(os.sep))
        self.package = parts[:-1]
        self.name = self.package if parts[-1] == "__init__" else parts
        self.known = {name: self.name + (name,) for name, _, _, scope in self.definitions() if not scope}
        for node, _ in nodes:
            for local, full, _ in self.imported(node):
                self.known[local] = full

    def imported(self, node):
        """Names that an import makes, what each stands for, and what the import names."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                full = tuple(alias.name.split("."))
                yield alias.asname or full[0], full if alias.asname else full[:1], full
        elif isinstance(node, ast.ImportFrom):
            start = self.package[: max(0, len(self.package) + 1 - node.level)] if node.level else ()
            start += tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                full = start + (alias.name,)
                yield alias.asname or alias.name, full, full

    def definitions(self):
        """Name, node, kind and scope of functions, classes, and values of modules and classes."""
        for node, scope in self.nodes:
            if isinstance(node, DEFINITIONS):
                yield node.name, node, "class" if isinstance(node, ast.ClassDef) else "def", scope
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                if any(isinstance(one, FUNCTIONS) for one in scope):
                    continue
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for one in ast.walk(target):
                        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                            yield one.id, node, "value", scope

    def uses(self, last):
        """Line, full name and scope of each use of what is called `last`; no full name where an object is not known."""
        for node, scope in self.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
                full = self.known.get(node.id, (node.id,))
                if full[-1] == last:
                    yield node.lineno, full, scope
            elif isinstance(node, ast.Attribute) and node.attr == last:
                yield node.end_lineno, self.full_name(node, scope), scope
            for _, _, full in self.imported(node):
                for at in (at for at, part in enumerate(full) if part == last):
                    yield node.lineno, full[: at + 1], scope

    def full_name(self, node, scope):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        if node.id in ("self", "cls"):
            classes = [at for at, one in enumerate(scope) if isinstance(one, ast.ClassDef)]
            return self.name + names(scope[: classes[-1] + 1]) + tuple(parts) if classes else None
        start = self.known.get(node.id)
        return start + tuple(parts) if start else (node.id,) + tuple(parts)

    def line(self, number):
        return cut(self.lines[number - 1]) if number <= len(self.lines) else ""


def decoded(data):
    """Lines as the parser counts them."""
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def modules(task, name, unread):
    """Files in which the last part of a dotted name stands; what cannot be read goes to `unread`."""
    last = name[-1].encode()
    for path in python_files(task):
        try:
            data = read(task["workdir"], path)
            # Identifiers outside of ASCII have several spellings.
            if last in data or not last.isascii():
                yield Module(path, data)
        except Refused as reason:
            unread.append("%s %s" % (path, reason))


def parsed_name(text):
    parts = tuple(text.split("."))
    if not all(part.isidentifier() for part in parts):
        raise Refused("%r is no name: names are like `run`, `App.run` or `package.module.App.run`" % text)
    return parts


def definitions(task, asked):
    """Where functions, classes, and values of modules and classes are defined."""
    name, unread, exact, others = parsed_name(asked.name), [], [], []
    for module in modules(task, name, unread):
        found = [one for one in module.definitions() if one[0] == name[-1]]
        for _, node, kind, scope in sorted(found, key=lambda one: one[1].lineno):
            full = module.name + names(scope) + name[-1:]
            place = "%s:%d-%d" % (module.path, first_line(node), node.end_lineno)
            line = "%s  %s %s  %s" % (place, kind, ".".join(names(scope) + name[-1:]), module.line(node.lineno))
            (exact if ends_with(full, name) else others).append(line)
    if not exact and others:
        say("nothing is defined as %s; as %s:" % (asked.name, name[-1]))
        exact = others
    return answer(exact, asked, unread, "definition of")


def references(task, asked):
    """Where a name is used or imported: as it is written, with what the file imports under that name."""
    name, unread, lines, unknown = parsed_name(asked.name), [], {}, 0
    for module in modules(task, name, unread):
        uses = [(number, names(scope), full) for number, full, scope in module.uses(name[-1])]
        for number, scope, full in sorted(uses, key=lambda use: use[:2]):
            whole = full is not None and len(full) > 1
            if len(name) == 1 or whole and (ends_with(full, name) or ends_with(name, full)):
                where = "in %s" % ".".join(scope) if scope else "at the top"
                lines["%s:%d  %s  %s" % (module.path, number, where, module.line(number))] = None
            else:
                unknown += 1
    code = answer(list(lines), asked, unread, "reference to")
    if unknown:
        what = count(unknown, "use") + " of another %s, or of an object whose class cannot be told" % name[-1]
        say("%s: gistify references %s" % (what, name[-1]))
    return code


def answer(lines, asked, unread, what):
    noun, preposition = what.split()
    say("%s %s %s" % (count(len(lines), noun), preposition, asked.name))
    show(lines, asked.limit)
    for text in unread[:MOST_NAMED]:
        say("left out: " + text)
    if len(unread) > MOST_NAMED:
        say("left out: %d more files" % (len(unread) - MOST_NAMED))
    return 0 if lines else 1
