"""What of the source's text stands in a witness: branches, annotations, attributes and texts that name modules."""

from generating import executed, make, search


def witness(start, files):
    """The text of a witness of `test_it`, without blank lines."""
    made = make(start, files, "test_it.py", "test_it")
    assert made.text is not None, made.said["failures"]
    return "\n".join(line for line in made.text.split("\n") if line.strip()) + "\n"


CHAIN = """\
def pick(x):
    if x == 1:
        return "one"
    elif x == 2:
        return "two"
    elif x == 3:
        return "three"
    else:
        if x == 4:
            return "four"
        elif x == 5:
            return "five"
        x += 1
    return x
"""


def test_a_chain_stays_one_without_the_conditions_that_never_held(start):
    test = "import a\ndef test_it():\n    assert [a.pick(x) for x in (1, 3)] == ['one', 'three']\n"
    text = witness(start, {"a.py": CHAIN, "test_it.py": test})
    assert '        return "one"\n    elif x == 3:\n        return "three"\n' in text, text


def test_an_elif_below_an_else_does_not_join_the_chain_above(start):
    test = "import a\ndef test_it():\n    assert [a.pick(x) for x in (1, 5, 6)] == ['one', 'five', 7]\n"
    text = witness(start, {"a.py": CHAIN, "test_it.py": test})
    assert '    else:\n        if x == 5:\n            return "five"\n        x += 1\n' in text, text


NODES = {
    "nodes.py": "class Call:\n    pass\nclass Filter:\n    pass\nclass Template:\n    pass\n",
    "runtime.py": "class Template:\n    pass\n",
}


def test_an_annotation_that_is_not_evaluated_loses_all_modules_or_none(start):
    files = {
        **NODES,
        "a.py": (
            "from __future__ import annotations\nimport nodes\nimport runtime\nRUNS = runtime.Template\n"
            "def kind(node: nodes.Call | nodes.Filter):\n    return isinstance(node, nodes.Filter)\n"
            "def source(of: nodes.Template | nodes.Call) -> str | runtime.Template:\n    return nodes.Template, RUNS\n"
        ),
        "test_it.py": "import a, nodes\ndef test_it():\n    assert a.kind(nodes.Filter()) and a.source(0)\n",
    }
    text = witness(start, files)
    assert "def kind(node: nodes.Call | nodes.Filter):\n    return isinstance(node, Filter)\n" in text, text
    assert "class Call" not in text and "def source(of: nodes.Template | nodes.Call) -> str | Template:\n" in text, text
    assert "    return _nodes_Template, RUNS\n" in text, text


def test_an_annotation_that_is_asked_for_is_evaluated(start):
    files = {
        **NODES,
        "a.py": (
            "from __future__ import annotations\nimport typing\nfrom nodes import Call as Node\n"
            "def kind(node: Node):\n    return 1\ndef hint():\n    return typing.get_type_hints(kind)['node'].__name__\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    print(a.hint())\n    assert a.kind(0)\n",
    }
    text = witness(start, files)
    assert "class Call:\n" in text and ("def kind(node: Call):\n" in text or "Node = Call\n" in text), text


def test_annotations_of_local_variables_need_nothing(start):
    files = {
        "nodes.py": "class Call:\n    pass\nclass Filter:\n    pass\nclass Key:\n    pass\n",
        "a.py": (
            "import nodes\nclass Box:\n    kind: nodes.Key = None\n"
            "    def fill(self):\n        found: nodes.Call = 1\n        self.of: nodes.Filter = found\n        return self.of\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert a.Box.kind is None\n    assert a.Box().fill() == 1\n",
    }
    text = witness(start, files)
    assert "class Call" not in text and "class Filter" not in text and "class Key:\n" in text, text


def test_a_dataclass_knows_its_class_variables(start):
    files = {
        "a.py": (
            "from __future__ import annotations\nimport dataclasses\nimport typing as t\n"
            "@dataclasses.dataclass\nclass Box:\n    size: int\n    most: t.ClassVar[int] = 3\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert str(a.Box(1)).endswith('Box(size=1)')\n    assert a.Box.most == 3\n",
    }
    made = make(start, files, "test_it.py", "test_it")
    assert made.text is not None and "import typing as t\n" in made.text and made.said["level"] == "least"


def test_class_attributes_that_nothing_reads_go(start):
    files = {
        "a.py": "class Box:\n    limit = 3\n    idle = 4\n    __slots__ = ()\n    def of(self):\n        return self.limit\n",
        "test_it.py": "import a\ndef test_it():\n    assert a.Box().of() == 3\n",
    }
    text = witness(start, files)
    assert "    limit = 3\n" in text and "__slots__" in text and "idle" not in text, text


def test_code_that_imports_from_several_modules_imports_all_from_the_witness(start):
    files = {
        "tiny/__init__.py": "",
        "tiny/one.py": "def first():\n    return 1\n",
        "tiny/two.py": "def second():\n    return 2\n",
        "tiny/compile.py": (
            "CODE = 'from tiny.one import first\\nfrom tiny.two import second\\nfrom os import sep\\nresult = first() + second()'\n"
            "def run():\n    space = {}\n    exec(CODE, space)\n    return space['result']\n"
        ),
        "test_it.py": "from tiny.compile import run\ndef test_it():\n    assert run() == 3\n",
    }
    text = witness(start, files)
    assert "'from concise import first\\nfrom concise import second\\nfrom os import sep\\n" in text, text


def test_only_what_the_driver_says_of_modules_changes_texts(start):
    files = {
        "tiny/__init__.py": "def real():\n    return 'tiny.real'\ndef pick(name):\n    return globals()[name]()\n",
        "test_it.py": (
            "import tiny\ndef test_it():\n    try:\n        tiny.pick('real')\n"
            "    except KeyError:\n        raise NameError(\"name 'real' is not defined: it asks for tiny\")\n"
        ),
    }
    made = make(start, files, "test_it.py", "test_it")
    assert made.text is not None and "return 'tiny.real'\n" in made.text, made.text


def test_anything_may_stand_where_modules_do(start):
    files = {
        "a.py": (
            "import sys, types, weakref\nclass Loud:\n    def __getattr__(self, name):\n        raise RuntimeError(name)\n"
            "def put():\n    sys.modules['gone'] = weakref.proxy(types.ModuleType('gone'))\n    sys.modules['loud'] = Loud()\n"
            "    return 1\n"
        ),
        "test_it.py": "import a\ndef test_it():\n    assert a.put() == 1\n",
    }
    assert "weakref.proxy" in witness(start, files)


def test_what_comes_from_compiled_code_of_the_tree_is_named(start):
    files = {
        "tiny/__init__.py": "",
        "tiny/_fast.py": "class Fast:\n    answer = 42\n",
        "tiny/core.py": "from ._fast import Fast as Quick\nfrom tiny import _fast as speed\nimport tiny._fast as tf\n\n\ndef answer():\n    return Quick.answer\n",
        "test_all.py": "from tiny.core import answer\n\n\ndef test_it():\n    assert answer() == 42\n",
    }
    execution, expected = executed(start, files, "test_all.py", "test_it")
    # As if it had no source.
    execution["modules"]["tiny._fast"] = "tiny/_fast.cpython-312-x86_64-linux-gnu.so"
    del execution["files"]["tiny/_fast.py"]
    made = search(start, files, execution, expected, "test_all.py", "test_it")
    assert made.text is None
    assert made.said["compiled"] == ["Quick", "_fast", "speed", "tf"]
    assert make(start, files, "test_all.py", "test_it").said["compiled"] == []


def test_an_imported_name_that_is_added_to_is_bound_before(start):
    files = {
        "tiny/__init__.py": "from .core import kinds as core_kinds\nfrom .more import others\n\ncore_kinds += others\n",
        "tiny/core.py": "kinds = ['a']\n\n\ndef known(kind):\n    return kind in kinds\n",
        "tiny/more.py": "others = ['b']\n",
        "test_it.py": "import tiny\nfrom tiny.core import known\n\n\ndef test_it():\n    assert known('b') and tiny.core_kinds == ['a', 'b']\n",
    }
    text = witness(start, files)
    assert text.index("kinds = ['a']") < text.index("core_kinds = kinds") < text.index("core_kinds += others")


def test_a_conftest_that_makes_cases_does_so_in_the_witness(start):
    files = {
        "tiny.py": "def double(number):\n    return number + number\n",
        "conftest.py": "def pytest_generate_tests(metafunc):\n    if 'number' in metafunc.fixturenames:\n"
        "        metafunc.parametrize('number', [1, 2])\n    if 'word' in metafunc.fixturenames:\n        raise ValueError\n",
        "test_it.py": "from tiny import double\n\n\ndef test_it(number):\n    assert double(number) == 2 * number\n",
    }
    assert "def pytest_generate_tests(metafunc):" in witness(start, files)
    # pytest asks it about every test: one without such cases does without.
    assert "metafunc" not in witness(start, dict(files, **{"test_it.py": files["test_it.py"].replace("number", "").replace("double() == 2 * ", "double(1) == 2")}))
    # A hook of the test's own is called after that of the conftest: one file has no two of them.
    own = "def pytest_generate_tests(metafunc):\n    pass\n"
    made = make(start, dict(files, **{"test_it.py": files["test_it.py"] + "\n\n" + own}), "test_it.py", "test_it")
    assert made.text is None and "fixture 'number' not found" in made.said["failures"][0][1]


def test_what_was_asked_of_the_names_of_a_module_is_not_asked_of_those_of_the_witness(start):
    files = {
        "tiny/__init__.py": "from .core import Kind as short\n\nif 'Kind' not in globals():\n    Kind = short\n",
        "tiny/core.py": "class Kind:\n    size = 3\n\n\ndef made():\n    return Kind()\n",
        "test_it.py": "import tiny\nfrom tiny.core import made\n\n\ndef test_it():\n    assert isinstance(made(), tiny.Kind)\n",
    }
    text = witness(start, files)
    assert "globals()" not in text and "Kind = short" in text
