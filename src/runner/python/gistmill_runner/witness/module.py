"""A module of the tree: its source, and what of it ran."""

import ast

from .source import DEFINITIONS, FUNCTIONS, IMPORTS, first_line, suites

# After everything that ran.
_NEVER = 1 << 60


class Module:
    """A source under the name that it was imported by, with what of it ran.

    `lines` gives the order in which each line first ran; `started` the functions that started, by first line and name.
    What is protected stays whatever ran: the test function. `varying` are lines and functions that run by chance. `failed`
    has the imports that failed, by the `try` of the module that caught it.
    """

    def __init__(self, name, source, scopes, lines, started, varying=((), ())):
        self.name = name
        self.source = source
        self.scopes = scopes
        self.lines = lines
        self.started = started
        self.varying_lines, self.varying_functions = map(frozenset, varying)
        self.protected = set()
        self.protected_functions = set()
        self.is_package = source.path.rpartition("/")[2] == "__init__.py"
        self.package = name if self.is_package else name.rpartition(".")[0]
        self._ran = {}
        self.failed = dict(self._failed_imports())

    def _failed_imports(self):
        stack = [self.source.tree.body]
        while stack:
            for statement in stack.pop():
                if isinstance(statement, (ast.If, ast.Try)):
                    stack.extend(suites(statement))
                if isinstance(statement, ast.Try):
                    caught = [one for one in statement.handlers if self.any_ran(one.body)]
                    last = ([None] + [one for one in statement.body if self.ran(one)])[-1]
                    if caught and isinstance(last, IMPORTS) and not any(one.name for one in caught):
                        yield statement, last

    def protect(self, function):
        """Count all of a definition as executed: it is the test that the witness is for."""
        first = first_line(function)
        after = max(self.lines.values(), default=0) + 1
        for line in range(first, function.end_lineno + 1):
            self.protected.add(line)
            self.lines.setdefault(line, after)
        for node in ast.walk(function):
            if isinstance(node, FUNCTIONS):
                self.protected_functions.add((first_line(node), node.name))
        self.started |= self.protected_functions
        self._ran.clear()

    def fill(self):
        """Count all of each function that was defined as executed."""
        for function in sorted(self.source.functions, key=lambda one: (one.lineno, one.col_offset)):
            if not self.ran(function):
                continue
            order = self.order(function)
            for line in range(first_line(function.body[0]), function.end_lineno + 1):
                self.lines.setdefault(line, order)
            self.started.add((first_line(function), function.name))
            self._ran.clear()

    def narrow(self, lines, started):
        """Forget what ran of the original and not of a witness. Returns what it was, for `restore`."""
        before = self.lines, set(self.started)
        lines = lines | self.protected | self.varying_lines
        self.lines = {line: order for line, order in self.lines.items() if line in lines}
        self.started &= started | self.protected_functions | self.varying_functions
        self._ran.clear()
        return before

    def restore(self, before):
        """Take a narrowing back."""
        self.lines, self.started = before
        self._ran.clear()

    def any_line_ran(self, first, last):
        """Whether a line from `first` to `last` ran."""
        return any(line in self.lines for line in range(first, last + 1))

    def ran(self, statement):
        """Whether a statement ran; of a definition, whether it was defined."""
        known = self._ran.get(statement)
        if known is None:
            last = statement.end_lineno
            if isinstance(statement, DEFINITIONS):
                last = max(statement.lineno, first_line(statement.body[0]) - 1)
            known = self._ran[statement] = self.any_line_ran(first_line(statement), last)
        return known

    def any_ran(self, statements):
        """Whether one of these ran, whatever of it."""
        return any(self.any_line_ran(first_line(one), one.end_lineno) for one in statements)

    def did_start(self, function):
        """Whether a function was called."""
        lines = [function.lineno] + [decorator.lineno for decorator in function.decorator_list]
        return any((line, function.name) in self.started for line in lines)

    def order(self, statement):
        """When a statement first ran."""
        lines = range(first_line(statement), statement.end_lineno + 1)
        return min((self.lines[line] for line in lines if line in self.lines), default=_NEVER)

    def first_order(self):
        """When the first of its lines ran."""
        return min(self.lines.values(), default=_NEVER)

    def listed_names(self):
        """The texts in its lists of texts: names that generated code imports are kept in such lists."""
        values = (one.value for one in self.source.tree.body if isinstance(one, ast.Assign) and self.ran(one))
        lists = (value for value in values if isinstance(value, (ast.List, ast.Tuple, ast.Set)))
        items = (item for value in lists for item in value.elts)
        return {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}

    def is_protected(self, statement):
        """Whether a statement belongs to the test function."""
        return statement.lineno in self.protected
