"""Planned lines of a witness, and what a plan may keep."""

from collections import namedtuple


class Line:
    """A logical line that a witness has, with its suite where it has one.

    Its text is `prefix` and the span of the source, or `text` where it is given; `nodes` are what it refers by.
    `detail` belongs to the kind: of an "import" its names, each with what it means and whose name it
    binds (the symbol where other statements bind it as well, else what it means; None in a function); of an "assigned" import the binding.
    """

    __slots__ = ("module", "kind", "statement", "span", "prefix", "text", "suite", "nodes", "detail")

    def __init__(self, module, kind, statement, span=None, prefix="", text=None, suite=None, nodes=(), detail=None):
        self.module = module
        self.kind = kind
        self.statement = statement
        self.span = span
        self.prefix = prefix
        self.text = text
        self.suite = suite
        self.nodes = nodes
        self.detail = detail


def every(lines):
    """The lines and all in their suites."""
    stack = list(reversed(lines))
    while stack:
        line = stack.pop()
        yield line
        stack.extend(reversed(line.suite or ()))


# How a text is made:
#   most    what did not run stays too: methods that were not called, conditions and loops that were never taken and whose
#           test may have an effect, docstrings, annotations, and all statements of a module that ran for their effect
#   places  `__file__` is where the code was
#   paths   texts that name the tree's modules name the witness
#   whole   a module that is used as a value has all names that what ran of it binds
#   named   `__name__` is the name of the module that it stands in
Options = namedtuple("Options", "most places paths whole named")
