"""Witnesses of small trees: what they keep, what they leave out, and how names and order come out."""

import pytest
from generating import SUBMISSION, executed, make, search

PACKAGE = {
    "tiny/__init__.py": "from .core import Box, join\nfrom . import core\n",
    "tiny/core.py": '''\
"""Boxes."""
import os
import collections as c

LIMIT = 3  # of a box


class Base:
    """What boxes have in common."""

    def size(self):
        return 0


class Box(Base):
    def __init__(self, items=(), *, limit: int = LIMIT):
        self.items = list(items)
        self.limit = limit

    def add(self, item):
        """Puts an item in."""
        # A comment.
        if len(self.items) >= self.limit:
            raise ValueError("full")
        else:
            self.items.append(item)
        return self

    def never(self):
        return os.sep


def join(parts, sep=", "):
    return sep.join(c.OrderedDict.fromkeys(parts))


def unused():
    return join([])
''',
    "tests/test_box.py": '''\
import tiny
from tiny import join as glue


def test_add():
    """Adds."""
    box = tiny.Box()
    box.add("x")
    assert box.items == ["x"]


def test_join():
    print(glue(["a", "b"]))
    assert glue(["a", "b"]) == "a, b"
''',
}


def witness(start, files, function="test_it", file="test_it.py", classes=()):
    """The text of a witness, without blank lines."""
    made = make(start, files, file, function, classes)
    assert made.text is not None, made.said["failures"]
    return "\n".join(line for line in made.text.split("\n") if line.strip()) + "\n"


def test_a_witness_has_what_ran_and_nothing_else(start):
    made = make(start, PACKAGE, "tests/test_box.py", "test_add")
    assert made.text == '''\
LIMIT = 3


class Base:
    """What boxes have in common."""


class Box(Base):
    def __init__(self, items=(), *, limit: int = LIMIT):
        self.items = list(items)
        self.limit = limit

    def add(self, item):
        self.items.append(item)
        return self


def test_add():
    """Adds."""
    box = Box()
    box.add("x")
    assert box.items == ["x"]
'''
    assert made.said["files"] == ["tests/test_box.py", "tiny/core.py"] and made.said["level"] == "least"
    assert len(set(made.tried)) == len(made.tried) == made.said["trials"], "no text is tried twice"


def test_an_import_under_another_name_is_renamed_or_assigned(start):
    text = witness(start, PACKAGE, "test_join", "tests/test_box.py")
    assert "glue = join\n" in text and "import collections as c\n" in text


def test_a_name_that_several_imports_bind_can_get_another_one(start):
    files = {
        "compat.py": "import os as json\nimport json\n",
        "models.py": "from compat import json as complex_json\ndef dump():\n    return complex_json.dumps([1])\n",
        "test_it.py": "import json, models\ndef test_it():\n    assert json.loads(models.dump()) == [1]\n",
    }
    text = witness(start, files)
    assert "import json as complex_json\n" in text and "import json\n" in text, text


def test_what_stands_in_for_an_import_that_fails_stands_alone(start):
    files = {
        "own.py": "def dumps(one):\n    return repr(one)\n",
        "a.py": (
            "try:\n    import os\n    from no_such_module import dumps\n    HAS = True\nexcept ImportError:\n"
            "    from own import dumps\n    HAS = False\ndef dump():\n    return dumps([os.sep]), HAS\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert a.dump() == (\"['/']\", False)\n",
    }
    text = witness(start, files)
    assert "try" not in text and "no_such_module" not in text and "return dumps([os.sep]), HAS" in text, text


def test_the_same_trace_gives_the_same_text(start):
    texts = {make(start, PACKAGE, "tests/test_box.py", "test_add").text for _ in range(2)}
    assert len(texts) == 1


def test_statements_stand_in_the_order_in_which_they_first_ran(start):
    files = {
        "a.py": "ONE = 1\nimport b\nTHREE = b.TWO + 1\n",
        "b.py": "import a\nTWO = a.ONE + 1\n",
        "test_it.py": "import a\ndef test_it():\n    assert a.THREE == 3\n",
    }
    assert witness(start, files) == "ONE = 1\nTWO = ONE + 1\nTHREE = TWO + 1\ndef test_it():\n    assert THREE == 3\n"


def test_two_things_of_one_name_get_two_names(start):
    files = {
        "a.py": "def f():\n    return 1\ndef g():\n    return f()\n",
        "b.py": "def f():\n    return 2\n",
        "test_it.py": "import a, b\ndef test_it():\n    assert (a.g(), b.f()) == (1, 2)\n",
    }
    text = witness(start, files)
    assert text.count("def f():") == 1 and ("def _a_f():" in text or "def _b_f():" in text)


def test_what_the_test_itself_uses_keeps_its_name(start):
    files = {
        "low.py": "def is_new(one):\n    return bool(one)\n\n\ndef both():\n    return is_new(1), is_new(2), is_new(3)\n",
        "high.py": "import low\ndef is_new(one):\n    return low.is_new(one[0])\n",
        "test_it.py": "import high, low\ndef test_it():\n    assert high.is_new([1]) and all(low.both())\n",
    }
    text = witness(start, files)
    assert "assert is_new([1])" in text and "return _low_is_new(one[0])" in text, text


def test_a_builtin_keeps_its_name(start):
    files = {
        "a.py": "from operator import add as sum\ndef len(x):\n    return sum(1, x)\ndef more(x):\n    return len(x)\n",
        "b.py": "def both(texts):\n    return sum([len(one) for one in texts])\n",
        "test_it.py": "import a, b\ndef test_it():\n    assert a.more(1) == 2 and b.both(['ab', 'c']) == 3\n",
    }
    text = witness(start, files)
    assert "import add as _operator_sum\n" in text and "def _a_len(x):\n    return _operator_sum(1, x)" in text, text
    assert "return sum([len(one) for one in texts])" in text, text


def test_a_name_that_a_module_makes_of_a_builtin_stays(start):
    files = {
        "compat.py": "plain = str\nstr = str\nboth = (str, bytes)\n",
        "a.py": "def text(one):\n    return str(one)\n",
        "test_it.py": "import a, compat\ndef test_it():\n    assert isinstance(a.text(1), compat.both) and compat.plain\n",
    }
    assert "plain = str\nstr = str\nboth = (str, bytes)\n" in witness(start, files)


def test_an_import_in_a_try_gets_another_name_too(start):
    shadowed = "try:\n    from operator import add as sum\n    HAS = True\nexcept ImportError:\n    HAS = False\n"
    files = {
        "a.py": shadowed + "def pair():\n    return sum(1, 2), HAS\n",
        "b.py": "def both():\n    return sum([1, 2])\n",
        "test_it.py": "import a, b\ndef test_it():\n    assert a.pair() == (3, True) and b.both() == 3\n",
    }
    text = witness(start, files)
    assert "import add as _operator_sum\n" in text and "return _operator_sum(1, 2), HAS" in text, text


def test_what_a_decorator_asks_for_stays(start):
    files = {
        "a.py": (
            "import functools\n@functools.total_ordering\nclass Size:\n    def __eq__(self, other):\n        return True\n"
            "    def __gt__(self, other):\n        return False\n    def never(self):\n        return 1\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert a.Size() == a.Size()\n",
    }
    text = witness(start, files)
    assert "def __gt__" in text and "never" not in text, text


def test_two_classes_of_one_name_keep_it_and_get_another_besides(start):
    files = {
        "a.py": "class Thing:\n    pass\n",
        "b.py": "class Thing:\n    pass\n",
        "test_it.py": "import a, b\ndef test_it():\n    print(a.Thing.__name__)\n    assert issubclass(b.Thing, object)\n",
    }
    files["test_it.py"] = (
        "from helper import names\ndef test_it():\n    assert names() == ['Thing', 'Thing']\n"
    )
    files["helper.py"] = "import a, b\ndef names():\n    return [a.Thing.__name__, b.Thing.__name__]\n"
    text = witness(start, files)
    assert text.count("class Thing:") == 2 and "_a_Thing = Thing\n" in text


def test_a_module_that_is_used_as_a_value_is_the_witness_itself(start):
    files = {
        "a.py": "VALUE = 1\ndef get():\n    return VALUE\n",
        "test_it.py": "import a\ndef test_it(monkeypatch):\n    monkeypatch.setattr(a, 'VALUE', 2)\n    assert a.get() == 2\n",
    }
    text = witness(start, files)
    assert "a = sys.modules[__name__]\n" in text and "assert get() == 2" in text


def test_a_module_that_is_looked_into_by_name_has_all_its_names(start):
    files = {
        "codes.py": "PLUS = 1\nMINUS = 2\ndef unused():\n    return 3\n",
        "other.py": "PLUS = 'plus'\ndef name():\n    return PLUS\n",
        "table.py": "import codes\nTABLE = {op: getattr(codes, name) for op, name in [('+', 'PLUS'), ('-', 'MINUS')]}\n",
        "test_it.py": "import other, table\ndef test_it():\n    assert (table.TABLE['+'], other.name()) == (1, 'plus')\n",
    }
    text = witness(start, files)
    assert "PLUS = 1\n" in text and "MINUS = 2\n" in text and "PLUS = 'plus'\n" in text
    assert "codes = sys.modules[__name__]\n" in text


def test_which_names_a_module_has_is_not_said_of_the_witness(start):
    files = {
        "units.py": (
            "def metre():\n    return 1\ndef yard():\n    return 2\n__all__ = ['metre', 'yard']\ndef __dir__():\n    return __all__\n"
            "def __getattr__(name):\n    if name == 'old':\n        return metre\n    raise AttributeError(name)\n"
        ),
        "test_it.py": "import units\ndef test_it():\n    assert [getattr(units, name)() for name in ('old', 'yard')] == [1, 2]\n",
    }
    text = witness(start, files)
    assert "def __getattr__(name):" in text and "def yard():" in text and "__dir__" not in text, text


def test_what_a_library_collects_from_a_module_stays(start):
    files = {
        "hooks.py": "def mark(function):\n    function.is_hook = True\n    return function\n@mark\ndef started(name):\n    return name\n",
        "calls.py": (
            "import hooks\ndef hooks_of(module):\n    found = [one for one in vars(module).values() if hasattr(one, 'is_hook')]\n"
            "    if not found:\n        raise ValueError('no hooks in %r' % module)\n    return [one.__name__ for one in found]\n"
            "FOUND = hooks_of(hooks)\n"
        ),
        "test_it.py": "import calls\ndef test_it():\n    assert calls.FOUND == ['started']\n",
    }
    assert "@mark\ndef started(name):\n" in witness(start, files)


def test_a_module_that_is_reached_through_its_package_keeps_its_path(start):
    files = {
        "pkg/__init__.py": "from ._impl import get\n",
        "pkg/_impl.py": "VALUE = 1\ndef get():\n    return VALUE\n",
        "test_it.py": (
            "import pkg\ndef test_it(monkeypatch):\n    monkeypatch.setattr(pkg._impl, 'VALUE', 2)\n    assert pkg.get() == 2\n"
        ),
    }
    text = witness(start, files)
    assert "pkg = sys.modules[__name__]\n" in text and "_impl = sys.modules[__name__]\n" in text
    assert "monkeypatch.setattr(pkg._impl, 'VALUE', 2)" in text


def test_fixtures_of_conftests_come_along_and_others_do_not(start):
    files = {
        "conftest.py": "import pytest\n@pytest.fixture\ndef one():\n    return 1\n@pytest.fixture\ndef two():\n    return 2\n",
        "test_it.py": "def test_it(one):\n    assert one == 1\ndef test_other(two):\n    assert two\n",
    }
    text = witness(start, files)
    assert "def one():" in text and "two" not in text


def test_what_pytest_misses_is_put_back_by_its_message(start):
    files = {
        "a.py": "def real():\n    return 5\n\ndef pick(name):\n    return globals()[name]()\n",
        "test_it.py": "import a\ndef test_it():\n    try:\n        a.pick('real')\n    except KeyError:\n        raise NameError(\"name 'real' is not defined\")\n",
    }
    made = make(start, files, "test_it.py", "test_it")
    assert made.text is not None and "def real():" in made.text and len(made.tried) >= 2


def test_abstract_methods_stay_as_stubs(start):
    files = {
        "a.py": (
            "import abc\nclass Base(abc.ABC):\n    @abc.abstractmethod\n    def must(self):\n        return 0\n"
            "class Thing(Base):\n    def must(self):\n        return 1\n    def may(self):\n        return 2\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert a.Thing()\n",
    }
    text = witness(start, files)
    assert text.count("def must(self):") <= 2 and "may" not in text


def test_a_class_keeps_the_methods_that_it_names_itself(start):
    files = {
        "a.py": "class Thing:\n    def one(self):\n        return 1\n    def two(self):\n        return 2\n    both = {'one': one}\n",
        "test_it.py": "import a\ndef test_it():\n    assert len(a.Thing.both) == 1\n",
    }
    assert "def two" not in witness(start, files) and "def one(self):\n        pass\n" in witness(start, files)


def test_registration_by_a_call_at_module_level_stays_where_what_it_fills_is_needed(start):
    files = {
        "a.py": "CODES = {}\nOTHER = []\ndef _fill():\n    CODES['ok'] = 200\n_fill()\nOTHER.append(1)\n",
        "test_it.py": "import a\ndef test_it():\n    assert a.CODES['ok'] == 200\n",
    }
    text = witness(start, files)
    assert "_fill()\n" in text and "OTHER" not in text


REGISTERS = {
    "method of an object": (
        "class Group:\n    def __init__(self):\n        self.commands = {}\n"
        "    def command(self, name):\n        def add(function):\n            self.commands[name] = function\n"
        "            return function\n        return add\n"
        "    def invoke(self, name):\n        return self.commands[name]()\n"
        "main = Group()\n"
        "@main.command('label')\ndef label():\n    return wording('x')\n"
        "@main.command('other')\ndef other():\n    return 'other'\n"
        "def wording(text):\n    return text * 2\n",
        "import a\ndef test_it():\n    assert a.main.invoke('label') == 'xx'\n",
    ),
    "function with a table": (
        "READERS = {}\n"
        "def reads(*endings):\n    def add(function):\n        for one in endings:\n            READERS[one] = function\n"
        "        return function\n    return add\n"
        "@reads('csv', 'tsv')\ndef label(text):\n    return text.split(',')\n"
        "@reads('ini')\ndef other(text):\n    return text.splitlines()\n"
        "def read(ending, text):\n    return READERS[ending](text)\n",
        "from a import read\ndef test_it():\n    assert read('csv', '1,2') == ['1', '2']\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REGISTERS)
def test_what_a_decorator_hands_to_something_needed_stays_where_it_was_called(start, kind):
    code, test = REGISTERS[kind]
    text = witness(start, {"a.py": code, "test_it.py": test})
    assert "def label(" in text and "other" not in text


def test_a_decorator_that_hands_over_nothing_brings_nothing(start):
    files = {
        "a.py": (
            "def twice(function):\n    return lambda: function() * 2\n"
            "@twice\ndef asked():\n    return 1\n@twice\ndef called_at_import():\n    return 2\n"
            "VALUE = called_at_import()\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert a.asked() == 2\n",
    }
    assert "called_at_import" not in witness(start, files)


LOOKS_INTO = {
    "files": "from importlib import resources\ndef names():\n    return (resources.files('pkg') / 'data' / 'n.txt').read_text()\n",
    "own": "import importlib.resources\ndef names():\n    return importlib.resources.files(__package__).joinpath('data/n.txt').read_text()\n",
    "get_data": "import pkgutil\ndef names():\n    return pkgutil.get_data('pkg', 'data/n.txt').decode()\n",
}


@pytest.mark.parametrize("kind", LOOKS_INTO)
def test_data_of_a_package_is_found_where_the_package_was(start, kind):
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/core.py": LOOKS_INTO[kind],
        "src/pkg/data/n.txt": "one two",
        "conftest.py": "import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'src'))\n",
        "test_it.py": "from pkg.core import names\ndef test_it():\n    assert names() == 'one two'\n",
    }
    made = make(start, files, "test_it.py", "test_it", data={"src/pkg/data/n.txt": "one two"})
    assert 'pathlib.Path(__file__).resolve().parent.joinpath("src", "pkg"' in made.text, made.said


def test_lines_in_texts_keep_their_place_and_comments_go(start):
    files = {
        "a.py": 'class A:\n    def text(self):\n        if True:  # always\n            return """one\n  two # no comment\n"""\n',
        "test_it.py": "import a\ndef test_it():\n    assert a.A().text() == 'one\\n  two # no comment\\n'\n",
    }
    text = witness(start, files)
    assert "  two # no comment\n" in text and "always" not in text


def test_a_generator_stays_one(start):
    files = {
        "a.py": "def numbers(n):\n    if n:\n        yield n\n    else:\n        return\n",
        "test_it.py": "import a\ndef test_it():\n    assert list(a.numbers(0)) == []\n",
    }
    assert "yield" in witness(start, files)


def test_a_generator_that_never_yielded_keeps_what_its_yield_stands_in(start):
    files = {
        "a.py": (
            "def numbers(names):\n    names = list(names)\n    for one in names:\n        if one:\n            print(one)\n"
            "            for part in one:\n                yield part\n    return None\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert list(a.numbers(['', ''])) == []\n",
    }
    text = witness(start, files)
    kept = "    for one in names:\n        if one:\n            for part in one:\n                yield part\n    return None\n"
    assert kept in text, text


def test_a_test_of_a_class_is_alone_in_it(start):
    files = {
        "a.py": "def f():\n    return 1\n",
        "test_it.py": (
            "import a\nclass TestA:\n    limit = 1\n    def setup_method(self):\n        self.one = a.f()\n"
            "    def test_it(self):\n        assert self.one == self.limit\n    def test_other(self):\n        assert False\n"
        ),
    }
    text = witness(start, files, classes=["TestA"])
    assert "test_other" not in text and "setup_method" in text and "limit = 1" in text


def test_files_beside_the_code_are_found_where_they_were(start):
    here = "import os\ndef test_it(place):\n    assert os.path.basename(place) == 'sub'\n"
    files = {
        "sub/conftest.py": (
            "import os, pytest\n@pytest.fixture\ndef place():\n    folder = os.path.dirname(__file__)\n"
            "    open(os.path.join(folder, 'data.txt')).close()\n    return folder\n"
        ),
        "sub/data.txt": "x",
        "sub/test_it.py": here,
    }
    execution, _ = executed(start, files, "sub/test_it.py", "test_it")
    assert execution["opened"] == ["sub/data.txt"]
    made = make(start, files, "sub/test_it.py", "test_it", data={"sub/data.txt": "x"})
    assert 'os.path.join(os.path.dirname(__file__), "sub", "conftest.py")' in made.text


def test_a_group_without_a_witness_says_how_every_level_failed(start):
    files = {
        "a.py": "import os\nHERE = os.path.basename(__file__)\n",
        "test_it.py": "import a\ndef test_it():\n    assert a.HERE == 'a.py'\n",
    }
    said = make(start, files, "test_it.py", "test_it").said
    assert said["text"] is None and [level for level, _ in said["failures"]] == ["least", "most", "functions"]
    assert "concise.py" in said["failures"][0][1]


@pytest.mark.parametrize("source", ["x = [" + "[" * 150 + "]" * 150 + "]\n", "x = " + "-" * 5000 + "1\n"])
def test_code_that_is_too_deep_is_given_up(start, source):
    files = {"a.py": "X = 1\n", "test_it.py": "import a\ndef test_it():\n    assert a.X\n"}
    execution, _ = executed(start, files, "test_it.py", "test_it")
    generator = start({**files, "a.py": source})
    assert generator.ask("open_generator")["type"] == "generator_ready"
    asked = {"file": "test_it.py", "classes": [], "function": "test_it", "submission": SUBMISSION}
    answer = generator.ask("generate", execution=execution, **asked)
    assert answer["type"] in ("generated", "candidate")
    if answer["type"] == "generated":
        assert answer["text"] is None and answer["failures"][0][0] == "generator"


def test_functions_that_run_in_threads_and_at_import_are_seen(start):
    files = {
        "a.py": "import threading\nGOT = []\ndef work():\n    GOT.append(1)\ndef run():\n    t = threading.Thread(target=work)\n    t.start()\n    t.join()\nrun()\n",
        "test_it.py": "import a\ndef test_it():\n    a.run()\n    assert a.GOT == [1, 1]\n",
    }
    text = witness(start, files)
    assert "def work():\n    GOT.append(1)\n" in text and text.count("run()\n") == 2


def test_code_that_imports_from_the_tree_imports_from_the_witness(start):
    files = {
        "tiny/__init__.py": "",
        "tiny/runtime.py": "exported = ['greet', 'Thing']\nclass Thing:\n    pass\ndef greet():\n    return 'hello'\n",
        "tiny/compile.py": (
            "from .runtime import exported\n"
            "def run():\n"
            "    space = {}\n"
            "    exec('from tiny.runtime import ' + ', '.join(exported) + '\\nresult = greet()', space)\n"
            "    return space['result']\n"
        ),
        "test_it.py": "from tiny.compile import run\ndef test_it():\n    assert run() == 'hello'\n",
    }
    text = witness(start, files)
    assert "exec('from concise import ' + ', '.join(exported) + " in text
    assert "def greet():\n    return 'hello'\n" in text and "class Thing:\n    pass\n" in text


def test_a_text_with_the_path_of_something_leads_to_the_witness_where_it_is_asked_for(start):
    files = {
        "tiny/__init__.py": "import importlib\ndef load(path):\n    return getattr(importlib.import_module(path.rpartition('.')[0]), path.rpartition('.')[2])\n",
        "tiny/plugin.py": "def act():\n    return 'done'\nNAME = 'tiny.plugin'\n",
        "test_it.py": "import tiny\nPLUGIN = 'tiny.plugin.act'\ndef test_it():\n    assert tiny.load(PLUGIN)() == 'done'\n",
    }
    text = witness(start, files)
    assert "PLUGIN = 'concise.act'\n" in text and "def act():\n    return 'done'\n" in text and "NAME" not in text


def test_texts_stay_as_they_are_where_nothing_asks_for_modules(start):
    files = {
        "tiny/__init__.py": "def name():\n    return 'tiny.name'\n",
        "test_it.py": "import tiny\ndef test_it():\n    print(tiny.name())\n",
    }
    assert "return 'tiny.name'\n" in witness(start, files)


def test_lines_that_run_by_chance_stay(start):
    files = {
        "a.py": "def pick(value):\n    if value:\n        return 1\n    return 2\n",
        "test_it.py": "import a\ndef test_it():\n    a.pick(True)\n",
    }
    assert "return 2" not in witness(start, files)
    execution, expected = executed(start, files, "test_it.py", "test_it")
    ran = execution["files"]["a.py"]
    ran["lines"].append([4, 99])
    ran["varying"] = {"lines": [3, 4], "started": []}
    made = search(start, files, execution, expected, "test_it.py", "test_it")
    assert "    if value:\n        return 1\n    return 2\n" in made.text


def test_what_a_star_brings_keeps_its_name(start):
    files = {
        "a.py": "from math import *\ndef root(x):\n    return sqrt(x), floor(x)\n",
        "test_it.py": "import a\ndef test_it():\n    assert a.root(4.0) == (2.0, 4)\n",
    }
    text = witness(start, files)
    assert "from math import *\n" in text and "return sqrt(x), floor(x)\n" in text, text
