"""Makes up small repositories that use every kind of statement."""

import textwrap

NAMES = ["alpha", "beta", "gamma", "delta"]
VALUES = [
    "1", "0x10", "'a'", '"a" "b"', "[1, 2]", "f'{x!r:>{y}}'", "{**a, 'b': 1}", "pkg.one.call(x)", "pkg.Thing.make()",
    "(lambda q=1: q)(2)", "x if y else -1", "[i for i in pkg.one.items if i]", "(z := 3)", "a[1:, ...]", "not x", "b'x'",
    "one.call(x)", "other.value", "x < y <= 3", "f(*a, k=pkg.two.K, **b)", "1_000.0", "two", "await_",
]
LINES = [
    "{n} = {v}", "{n}: int = {v}", "{n}: int", "{n} += {v}", "return_ = {v}; {n} = {v}", "assert {v}, 'why'", "del {n}",
    "pass", "...", "import os, sys as system", "from pkg.one import call as {n}", "from . import two", "import pkg.two",
    "import pkg.one as one", "'text'", "raise ValueError({v})", "print({v},\n      {v})", "from collections import (OrderedDict,\n    deque)",
]
BLOCKS = [
    "if {v}:", "while {v}:", "for {n} in {v}:", "with {v} as {n}, {v}:", "def {n}(a, b={v}, *c, d: int = {v}, **e) -> None:",
    "class {n}(Base, metaclass=pkg.Meta):", "@decorate({v})\ndef {n}(self, x):", "async def {n}(a, /, b):", "class {n}:",
    "@pkg.one.mark\n@staticmethod\ndef {n}():", "if ({v} and\n        {v}):", "def test_{n}(x, {n}={v}):", "class Test{n}:",
]
TAILS = {
    "if": ["elif {v}:", "else:", "else:\n    if {v}:\n        pass\n    else:"],
    "while": ["else:"],
    "for": ["else:"],
}


def fill(rng, text):
    while "{n}" in text or "{v}" in text:
        text = text.replace("{n}", rng.choice(NAMES), 1).replace("{v}", rng.choice(VALUES), 1)
    return text


def body(rng, depth):
    rows = []
    for _ in range(rng.randrange(1, 4)):
        rows.append(statement(rng, depth))
    return textwrap.indent("\n".join(rows), "    ")


def statement(rng, depth):
    if depth >= 3 or rng.random() < 0.5:
        return fill(rng, rng.choice(LINES))
    kind = rng.randrange(8)
    if kind == 0:
        rows = ["try:", body(rng, depth + 1)]
        for _ in range(rng.randrange(0, 3)):
            rows += [fill(rng, rng.choice(["except pkg.Error as {n}:", "except (KeyError, ValueError):"])), body(rng, depth + 1)]
        if len(rows) > 2 and rng.random() < 0.4:
            rows += ["else:", body(rng, depth + 1)]
        if len(rows) == 2 or rng.random() < 0.4:
            rows += ["# why", "finally:", body(rng, depth + 1)]
        return "\n".join(rows)
    if kind == 1:
        rows = [fill(rng, "match {v}:")]
        for case in rng.sample(["[1, *rest]", "{{'a': 1}}", "pkg.Thing(x=1)", "str() | None", "other if other > 1"], 2):
            rows += ["    case %s:" % case.replace("{{", "{").replace("}}", "}"), textwrap.indent(body(rng, depth + 1), "    ")]
        return "\n".join(rows)
    head = fill(rng, rng.choice(BLOCKS))
    rows = [head, body(rng, depth + 1)]
    for word, tails in TAILS.items():
        if head.startswith(word + " ") and rng.random() < 0.6:
            tail = fill(rng, rng.choice(tails))
            inner = body(rng, depth + 1)
            rows += [tail, textwrap.indent(inner, "    ") if "\n" in tail else inner]
    return "\n".join(rows)


def repository(rng):
    files = {"pkg/__init__.py": "from .one import call\nfrom . import two\n"}
    for path in ("pkg/one.py", "pkg/two.py", "pkg/inner/__init__.py", "tests/test_one.py", "tests/conftest.py"):
        rows = [statement(rng, 0) for _ in range(rng.randrange(5, 25))]
        files[path] = "import pkg\nfrom pkg.one import call as renamed\n" * path.startswith("tests/") + "\n".join(rows) + "\n"
    return files
