"""The generator of witnesses on hostile source and forged traces: no crash, no endless search, the same text again.

Each input follows from its number. The same few hundred are tried in every run; GISTMILL_TEST_FUZZ_SECONDS makes it go on
for so long with new ones.
"""

import ast
import keyword
import os
import random
import re
import resource
import struct
import sys
import time
from pathlib import Path

from gistmill_runner.witness.search import TRIALS
from gistmill_runner.witness.serving import Generator

SECONDS = int(os.environ.get("GISTMILL_TEST_FUZZ_SECONDS", 0))
INPUTS = 300
# Inputs of one process: one that dies is known by its number.
BATCH = 50
# No small input keeps the generator busy for longer, in seconds of the processor.
LONGEST = 30
MEMORY = 2 << 30
WORD = re.compile(r"\b[a-zA-Z_]\w*\b(?!['\"])")
SAMPLES = sorted(
    path.read_text()
    for folder in ("gistmill_runner", "gistmill_runner/witness")
    for path in (Path(__file__).parent.parent / folder).glob("*.py")
    if path.stat().st_size < 6000
)
SAMPLE = '''\
from __future__ import annotations
import os.path as p, sys
from . import sub as s
from .sub import *
try:
    import json
except ImportError as error:
    json = None
else:
    from json import dumps
__all__ = ["f", "C"]
X: int = 1
@dec(1)
class C(Base, metaclass=M):
    """Text."""
    a = b = 1; c: str
    @property
    def g(self, *, x=X, **k) -> "C":
        nonlocal_ = [y for y in z if (w := y)]
        def inner():
            nonlocal nonlocal_
            global X
            return lambda q, /, *r: (yield q)
        return f"{self!r:>{x}} pkg.sub.f" + b"".decode()
match X:
    case {"a": [1, *rest], **more} if rest: pass
    case C(a=1) | None: f = 1
async def f(a, *b):
    async with a as (c, d), b: await c
    for x, *y in a: continue
    else: del x
    while True: break
    try: raise X from None
    except* ValueError: pass
    finally: return
if X: f()
elif not X: X += 1
'''
TOKENS = (
    "def test_it():\n", "class C:\n", "    ", "\n", "\t", ";", ":", "(", ")", "[", "]", "{", "}", ",", "=", ":=", "->", "@", "*", "**", "\\\n", "'", '"""',
    'f"{', "}\"", "rb'", "#", "\x0c", "\r", "\x00", "\ufeff", "é", "ﬁ", "𝔣", "\u2028", "\ud800", "0x", "1_", "1e999", "import a.b as c\n", "from pkg import *\n",
    "from .... import x\n", "from __future__ import annotations\n", "global X\n", "nonlocal X\n", "yield ", "await ", "lambda x: ", "del X\n", "match x:\n case ",
    "try:\n pass\nexcept* E:\n pass\n", "type X[T] = int\n", "async ", "if 1: ", "elif 1: ", "else: ", "with a as b: pass\n", "assert ", "-" * 50, "not " * 50, "x." * 50, "9" * 5000,
    "# -*- coding: utf-7 -*-\n", "# coding: rot13\n", "__slots__ = ()\n", "__all__ = [1, None]\n", "@overload\n", "def __getattr__(name): ...\n", "pytestmark = 1\n",
)  # fmt: skip


class Channel:
    """What the generator says last, in place of the driver's end of the pipe."""

    def send(self, kind, **fields):
        self.kind, self.fields = kind, fields


class Server:
    """What a generator needs of a server."""

    def __init__(self):
        self.channel = Channel()


class Input:
    """A small tree with what is said to have run in it, made from a number."""

    def __init__(self, number):
        self.chance = chance = random.Random(number)
        self.files = {path: self._text() for path in chance.sample(["pkg/__init__.py", "pkg/sub.py", "conftest.py", "a.py"], 2)}
        self.files["test_it.py"] = "%s\ndef test_it(x=1):\n    assert f(X)\n" % self._text()
        names = [*self.files, *self.files, chance.choice(("no_such.py", "pkg/data.txt", "a.py"))]
        modules = {chance.choice(("pkg", "pkg.sub", "a", "test_it", "", ".", "..", "a..b", "json", "x" * 999)): chance.choice(names) for _ in range(3)}
        self.execution = {
            "modules": modules,
            "files": {path: self._ran(text) for path, text in self.files.items()},
            "opened": chance.choice(([], ["pkg/data.txt"])),
        }

    def _text(self):
        text = self.chance.choice((SAMPLE, SAMPLE, self.chance.choice(SAMPLES)))
        for _ in range(self.chance.choice((0, 0, 1, 1, 3))):
            text = self.chance.choice((self._with_other_words, self._with_other_words, self._with_other_lines, self._torn))(text)
        return text

    def _with_other_words(self, text):
        """Names in the place of others: Python, most of the time."""
        names = [word for word in WORD.findall(text) if not keyword.iskeyword(word)]
        keeps = lambda word: keyword.iskeyword(word) or self.chance.random() < 0.9  # noqa: E731
        return WORD.sub(lambda found: found[0] if keeps(found[0]) else self.chance.choice(names), text)

    def _with_other_lines(self, text):
        """Lines moved among those that are indented as they are."""
        lines = text.split("\n")
        for _ in range(self.chance.randrange(1, 9)):
            at = self.chance.randrange(len(lines))
            alike = [line for line in lines if indentation(line) == indentation(lines[at])]
            lines[at:at + self.chance.randrange(2)] = [self.chance.choice(alike)]
        return "\n".join(lines)

    def _torn(self, text):
        at, length = self.chance.randrange(len(text) + 1), self.chance.randrange(40)
        part = self.chance.choice((self.chance.choice(TOKENS), text[at : at + length] * self.chance.randrange(400)))
        return text[:at] + part + text[at + self.chance.choice((0, length)) :]

    def _ran(self, text):
        lines = range(1, text.count("\n") + 2)
        some = self.chance.sample(lines, self.chance.randrange(len(lines) + 1)) if self.chance.random() < 0.5 else list(lines)
        some += [self.chance.choice((0, -1, 1 << 40, len(lines) + 1))]
        return {
            "lines": [[line, self.chance.choice((line, self.chance.randrange(1 << 20)))] for line in some],
            "started": [[self.chance.choice(some), self.chance.choice(("f", "g", "inner", "test_it", "<lambda>", ""))] for _ in range(9)]
            + defined(text),
        }

    def tried(self, text):
        """What a trial is said to have shown."""
        lines = range(text.count("\n") + 2)
        words = self.chance.choice(("f", "X", "C", "g", "pkg.sub", "no_such", ""))
        failure = self.chance.choice(("NameError: name '%s' is not defined", "it asks for %s", "has no attribute '%s'", "abstract methods '%s'"))
        some = self.chance.sample(lines, self.chance.randrange(len(lines) + 1))
        return {
            "agrees": self.chance.random() < 0.5,
            "failure": failure % words,
            "lines": some,
            "started": [[line, "f"] for line in some],
        }


def indentation(line):
    return len(line) - len(line.lstrip())


def defined(text):
    """All functions of a text that is Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [[node.lineno, node.name] for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def search(number):
    """Everything that the generator says of an input."""
    made = Input(number)
    for path, text in made.files.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(text.encode("utf-8", "surrogatepass"))
    server, said = Server(), []
    generator = Generator(server, None)
    generator.generate(
        {"execution": made.execution, "file": "test_it.py", "classes": [], "function": "test_it", "submission": "concise.py"}
    )
    while server.channel.kind == "candidate":
        text = server.channel.fields["text"]
        compile(text, "witness", "exec", dont_inherit=True)
        said.append(text)
        assert len(said) <= TRIALS, "the search goes on for ever"
        generator.tried(made.tried(text))
    assert server.channel.kind == "generated", server.channel.kind
    return said, server.channel.fields


def batch(first, tell):
    """What a process does: it tells the number of each input, and whether a text came of it."""
    sys.setrecursionlimit(4000)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, first + BATCH):
        os.write(tell, struct.pack(">Q?", number, False))
        began = time.process_time()
        said, ended = search(number)
        took = time.process_time() - began
        assert took < LONGEST, "it took %d seconds" % took
        if number % 10 == 0:
            assert search(number) == (said, ended), "another text came of the same input"
        if said:
            os.write(tell, struct.pack(">Q?", number, True))


def in_a_process(first, log):
    """The input that a batch came to, how many led to a text, and how its process ended."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            batch(first, tell)
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(tell)
    with os.fdopen(told, "rb") as file:
        known = [struct.unpack(">Q?", record) for record in iter(lambda: file.read(9), b"")]
    status = os.waitpid(child, 0)[1]
    return known[-1][0], sum(is_text for _, is_text in known), status


def test_no_source_and_no_trace_breaks_the_generator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    until = time.monotonic() + SECONDS
    first = random.SystemRandom().randrange(1 << 60) // BATCH * BATCH if SECONDS else 0
    tried = texts = 0
    while tried < INPUTS or time.monotonic() < until:
        last, some, status = in_a_process(first + tried, tmp_path / "log")
        assert status == 0, "input %d: status %d\n%s" % (last, status, (tmp_path / "log").read_text()[-3000:])
        tried, texts = tried + BATCH, texts + some
    print("%d inputs, %d with a text" % (tried, texts))
    # Enough are Python still: the search itself is what is tried.
    assert texts > tried // 20
