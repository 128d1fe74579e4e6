"""What a Python file has: properties of single tokens, as gistmill mines them."""

import ast
import codecs
import hashlib
import io
import keyword
import re
import sys
import tokenize
import unicodedata
from collections import Counter

LARGEST_SOURCE = 16 << 20
TEXT = re.compile(r"[\w.:/-]{3,60}")
# Encodings in which names are written as they are.
ENCODINGS = frozenset(["utf-8", "utf-8-sig", "iso8859-1", "ascii"])


class Reader:
    """Counts the features of a module: (kind, name). Where a node is in it says nothing, so that no depth is too deep."""

    def __init__(self, module):
        self.found = Counter()
        nodes = list(ast.walk(module))
        statements = [one for one in nodes if isinstance(one, (ast.Import, ast.ImportFrom))]
        self.imported = {(name.asname or name.name).split(".")[0] for one in statements for name in one.names} | {"self", "cls"}
        for node in nodes:
            visit = getattr(self, f"visit_{type(node).__name__}", None)
            if visit is not None:
                visit(node)

    def add(self, kind, name):
        if name:
            self.found[kind, name] += 1

    @staticmethod
    def last(node):
        return getattr(node, "attr", getattr(node, "id", None))

    def decorated(self, node):
        for one in node.decorator_list:
            self.add("decorator", self.last(one.func if isinstance(one, ast.Call) else one))

    def visit_FunctionDef(self, node):
        self.add("def", node.name)
        self.decorated(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.add("class", node.name)
        self.decorated(node)
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == "object":
                self.add("shape", "class-with-object-base")
            self.add("base", self.last(base))

    def module(self, name):
        parts = name.split(".")
        for size in range(1, len(parts) + 1):
            self.add("module", ".".join(parts[:size]))

    def visit_Import(self, node):
        for one in node.names:
            self.module(one.name)

    def visit_ImportFrom(self, node):
        module = "." * node.level + (node.module or "")
        self.add("module", module) if node.level else self.module(module)
        for one in node.names:
            self.add("from", f"{module}:{one.name}")

    def visit_Call(self, node):
        name = self.last(node.func)
        self.add("call", name)
        if isinstance(node.func, ast.Name) and name == "super" and (node.args or node.keywords):
            self.add("shape", "super-with-arguments")
        owner = getattr(node.func, "value", None)
        if name == "format" and isinstance(owner, (ast.Constant, ast.JoinedStr)) and is_text(owner):
            self.add("shape", "format-call-on-text")
        for one in node.keywords:
            self.add("kwarg", one.arg)
            if one.arg and name:
                self.add("kwpair", f"{name}:{one.arg}")

    def visit_Attribute(self, node):
        self.add("attr", node.attr)
        if isinstance(node.value, ast.Name) and node.value.id in self.imported:
            self.add("dotted", f"{node.value.id}.{node.attr}")

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Mod) and is_text(node.left):
            self.add("shape", "percent-format")

    def visit_JoinedStr(self, node):
        self.add("shape", "f-string")
        # Names in it are no tokens of their own before Python 3.12.
        if sys.version_info < (3, 12):
            for one in ast.walk(node):
                self.add("ident", getattr(one, "id", None) or getattr(one, "attr", None))

    def visit_Constant(self, node):
        value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        if isinstance(value, str) and TEXT.fullmatch(value) and re.search("[a-z]", value):
            self.add("text", value)


def is_text(node):
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


class Source(Counter):
    """What a file has. `unread` says why what it has is not all known, with what makes another file the same."""

    unread, digest = None, None


def unreadable(data):
    """Why names in a file may be other ones than those that are written there."""
    try:
        name = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        encoding = codecs.lookup(name).name
    except (SyntaxError, LookupError, UnicodeError):
        return "no encoding reads it"
    return None if encoding in ENCODINGS else f"it is written in {encoding}"


def features(data):
    """What a file has; names alone where it is no Python that this interpreter reads."""
    found = Source()
    found.digest = hashlib.sha256(data).hexdigest()
    if len(data) > LARGEST_SOURCE:
        found.unread = f"it is larger than {LARGEST_SOURCE} bytes"
        return found
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found.unread = unreadable(data)
    try:
        module = ast.parse(data)
        found.update(Reader(module).found)
        for one in module.body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found["place", one.name] += 1
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError) as error:
        found.unread = found.unread or f"it is no Python here: {type(error).__name__}"
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                found["ident", unicodedata.normalize("NFKC", token.string)] += 1
    except (SyntaxError, ValueError, LookupError, tokenize.TokenError) as error:
        found.unread = found.unread or f"it has no tokens here: {type(error).__name__}"
    return found
