"""The text of one file: its syntax tree, and where in the text its parts stand."""

import ast
import io
import tokenize

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = FUNCTIONS + (ast.ClassDef,)
IMPORTS = (ast.Import, ast.ImportFrom)
# The path of what is not a file of the tree.
TEXT = "<command>"


class Source:
    """A parsed file. Places in the text are offsets of characters; lines are 1-based."""

    def __init__(self, path, data):
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        self.path = path
        self.text = data.decode(encoding).lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.tree = ast.parse(self.text)
        # Not `splitlines`: to Python only these end a line.
        self.lines = [line + "\n" for line in self.text.split("\n")]
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.statements = {
            (node.lineno, node.col_offset): node for node in self.parents if isinstance(node, ast.stmt)
        }
        self.functions = [node for node in self.parents if isinstance(node, FUNCTIONS)]
        self.has_future_annotations = any(
            isinstance(statement, ast.ImportFrom)
            and statement.module == "__future__"
            and any(alias.name == "annotations" for alias in statement.names)
            for statement in self.tree.body
        )
        self.comments = []
        self.lines_in_texts = set()
        self.name_places = {}
        self._read_tokens()

    def _read_tokens(self):
        """Comments, lines that begin inside a text, and where definitions are named."""
        before, open_texts = None, []
        starts = (getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "TSTRING_START", None))
        ends = (getattr(tokenize, "FSTRING_END", None), getattr(tokenize, "TSTRING_END", None))
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                self.comments.append((self._place(token.start), self._place(token.end)))
            elif token.type == tokenize.STRING:
                self.lines_in_texts.update(range(token.start[0] + 1, token.end[0] + 1))
            elif token.type in starts:
                open_texts.append(token.start[0])
            elif token.type in ends:
                self.lines_in_texts.update(range(open_texts.pop() + 1, token.end[0] + 1))
            if token.type == tokenize.NAME:
                if before in ("def", "class"):
                    self.name_places[token.start[0], token.string] = (self._place(token.start), self._place(token.end))
                before = token.string
            elif token.type not in (tokenize.NL, tokenize.COMMENT):
                before = None

    def documentation(self):
        """The docstring as this interpreter keeps it, or None."""
        if ast.get_docstring(self.tree, clean=False) is None:
            return None
        known = {}
        exec(compile(ast.Module(body=self.tree.body[:1], type_ignores=[]), self.path, "exec"), known)  # nothing but a text
        return known["__doc__"]

    def _place(self, position):
        return self.starts[position[0] - 1] + position[1]

    def offset(self, line, column):
        """The place of a node's position, whose columns count bytes."""
        text = self.lines[line - 1]
        if not text.isascii():
            column = len(text.encode("utf-8")[:column].decode("utf-8", "ignore"))
        return self.starts[line - 1] + column

    def start(self, node):
        """Where a node begins."""
        return self.offset(node.lineno, node.col_offset)

    def span(self, node):
        """Where a node begins and ends."""
        return self.start(node), self.offset(node.end_lineno, node.end_col_offset)

    def line_of(self, place):
        """The line of a place."""
        return self.text.count("\n", 0, place) + 1

    def statement_of(self, node):
        """The statement that a node belongs to."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node


def remembered(function):
    """A function of one node whose result is kept: nodes do not change."""
    known = {}

    def of(node):
        if node not in known:
            known[node] = function(node)
        return known[node]

    of.__doc__ = function.__doc__
    return of


@remembered
def first_line(statement):
    """The first line of a statement, its decorators included."""
    return min([statement.lineno] + [decorator.lineno for decorator in getattr(statement, "decorator_list", ())])


def is_text(statement):
    """Whether a statement is nothing but a text, such as a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


@remembered
def names_of(node):
    """The name nodes in a node."""
    return [one for one in ast.walk(node) if isinstance(one, ast.Name)]


def stored_names(target):
    """Names that a target stores to."""
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del))]


def bound_names(statement):
    """Names that one statement binds itself, without the statements in it."""
    if isinstance(statement, DEFINITIONS):
        return [statement.name]
    if isinstance(statement, IMPORTS):
        whole = isinstance(statement, ast.Import)
        names = [alias for alias in statement.names if alias.name != "*"]
        return [alias.asname or (alias.name.split(".")[0] if whole else alias.name) for alias in names]
    targets = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars]
    elif type(statement).__name__ == "TypeAlias":
        targets = [statement.name]
    return [name for target in targets for name in stored_names(target)]


def suites(statement):
    """The suites of a compound statement that is no definition, in their order."""
    found = [getattr(statement, "body", None), *(handler.body for handler in getattr(statement, "handlers", ()))]
    found += [case.body for case in getattr(statement, "cases", ())]
    found += [getattr(statement, "orelse", None), getattr(statement, "finalbody", None)]
    return [suite for suite in found if isinstance(suite, list) and suite]


def arguments_of(function):
    """All parameters of a function or lambda."""
    every = function.args
    several = list(getattr(every, "posonlyargs", ())) + every.args + every.kwonlyargs
    return several + [one for one in (every.vararg, every.kwarg) if one]
