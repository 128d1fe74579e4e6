"""What the commands have in common: their words, and the repository's files as syntax."""

import ast
import os
import stat

# Characters of a line of source that are shown.
LONGEST_LINE = 200
# Bytes of a file of the repository beyond which it is not read.
LARGEST_FILE = 4 << 20
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = FUNCTIONS + (ast.ClassDef,)


class Refused(Exception):
    """What was asked cannot be done; the text says why."""


def say(text):
    """One line, whatever is in it."""
    print("".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text))


def cut(text):
    text = text.strip()
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…"


def count(number, noun):
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def show(lines, limit):
    for line in lines[:limit]:
        say(line)
    if len(lines) > limit:
        say("… and %d more: --limit" % (len(lines) - limit))


def read(root, path):
    """The bytes of a regular file."""
    try:
        with open(os.open(os.path.join(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("is no file")
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Refused("cannot be read: %s" % error.strerror)
    if len(data) > LARGEST_FILE:
        raise Refused("is larger than %d MiB" % (LARGEST_FILE >> 20))
    return data


def parse(data):
    try:
        return ast.parse(data)
    except SyntaxError as error:
        raise Refused("is not Python that this interpreter reads: line %s: %s" % (error.lineno, error.msg))
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused("cannot be parsed: %s" % type(error).__name__)


def walk(tree):
    """Every node with the definitions around it. Not recursive: nothing bounds how deep a file nests."""
    stack = [(tree, ())]
    while stack:
        node, scope = stack.pop()
        yield node, scope
        inside = scope + (node,) if isinstance(node, DEFINITIONS) else scope
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    # Decorators, bases and defaults belong to what is around a definition.
                    stack.append((child, inside if field == "body" else scope))


def first_line(node):
    return min([node.lineno] + [one.lineno for one in getattr(node, "decorator_list", [])])
