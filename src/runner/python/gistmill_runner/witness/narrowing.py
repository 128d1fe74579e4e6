"""From what of a witness ran back to what of the original it needs: the next one is made from less."""

import ast
from collections import defaultdict

from .source import IMPORTS


def lines_of_origin(rendering, executed):
    """Per module, the lines of its source whose planned lines ran in the witness, given the lines of the witness that did."""
    found, functions = defaultdict(set), {}
    seen = set()
    for number, line in enumerate(rendering.lines, 1):
        if line is None or line.statement is None or line.kind == "made":
            continue
        place = (line.module.name, id(line.statement))
        if line.kind in ("decorator", "function"):
            functions.setdefault(place, (number, line))
        if number in executed and id(line) not in seen:
            seen.add(id(line))
            found[line.module.name] |= _lines_of(line)
    return found, functions


def _lines_of(line):
    source = line.module.source
    if line.text is not None or line.kind in ("text", "declaration"):
        return set()
    if line.span is None or line.kind == "import":
        return set(range(line.statement.lineno, line.statement.end_lineno + 1))
    start, end = line.span
    text = source.text[start:end].rstrip()
    first = source.line_of(start)
    return set(range(first, first + text.count("\n") + 1))


def narrow(closure, rendering, executed, started):
    """Forget of the original what the witness itself did not run. Returns how to undo it, or None if nothing changed.

    `executed` are lines of the witness, `started` the first lines of its functions that started.
    """
    lines, functions = lines_of_origin(rendering, executed)
    called = defaultdict(set)
    for (name, _), (number, line) in functions.items():
        if number in started:
            definition = line.statement
            places = [definition.lineno] + [decorator.lineno for decorator in definition.decorator_list]
            called[name].update((place, definition.name) for place in places)
    undo, changed = [], False
    for module in closure.program.modules:
        kept = lines[module.name]
        for node in ast.walk(module.source.tree):
            if isinstance(node, IMPORTS):
                kept.update(range(node.lineno, node.end_lineno + 1))
        size = len(module.lines), len(module.started)
        before = module.narrow(kept, called[module.name])
        undo.append((module, before))
        changed = changed or size != (len(module.lines), len(module.started))
    return undo if changed else None


def widen(undo):
    """Undo a narrowing."""
    for module, before in undo:
        module.restore(before)
