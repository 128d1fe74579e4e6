"""Whether evaluating an expression may matter beside its value."""

import ast

from .source import remembered

_HARMLESS = frozenset(
    "isinstance issubclass len hasattr callable type bool any all getattr id str int".split()
)
# Methods that change what they are called on, wait for something, or take from somewhere.
_CHANGES = frozenset(
    "wait acquire join poll recv read readline accept connect send sendall write pop popitem popleft remove discard add append"
    " setdefault update next __next__ flush close seek put start result".split()
)
_CHANGING = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


@remembered
def is_pure(expression):
    """Whether it calls nothing that is not known to be harmless."""
    for node in ast.walk(expression):
        if isinstance(node, _CHANGING):
            return False
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) not in _HARMLESS:
            return False
    return True


@remembered
def has_effect(expression):
    """Whether it calls something that by its name changes, waits for or takes something."""
    for node in ast.walk(expression):
        if isinstance(node, _CHANGING):
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            if name in _CHANGES:
                return True
    return False


@remembered
def yields(statement):
    """The first `yield` of a function that a statement of it holds; None where there is none."""
    stack = [statement]
    while stack:
        node = stack.pop(0)
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack[:0] = ast.iter_child_nodes(node)
    return None
