"""The graph of a masked file, asked as agents ask it."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[2] / "masked" / "recube_graph.py"
SPEC = importlib.util.spec_from_file_location("recube_graph", PLACE)
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)

CORE = "class Core(base.Base):\n    def run(self):\n        raise NotImplementedError()\n\n\ndef make():\n    raise NotImplementedError()\n"
APP = "from .core import Core, make\r\n\r\n\r\nclass App(Core):\r\n    def go(self):\r\n        return make()\r\n"
OTHER = "from .base import Base\nclass Other(Base):\n    pass\n"
FILES = {"shop/core.py": CORE, "shop/app.py": APP, "shop/base.py": "class Base:\n    pass\n", "shop/other.py": OTHER, "run.py": "import shop.app\n"}
DEFINED = [
    ("shop/app.py:App", "class", (4, 6), ["Core"]),
    ("shop/app.py:App.go", "function", (5, 6), []),
    ("shop/base.py:Base", "class", (1, 2), []),
    ("shop/core.py:Core", "class", (1, 3), ["base.Base"]),
    ("shop/core.py:Core.run", "function", (2, 3), []),
    ("shop/core.py:make", "function", (6, 7), []),
    ("shop/other.py:Other", "class", (2, 3), ["Base"]),
]
EDGES = [
    ("shop", "contains", "shop/core.py", 1),
    ("shop/core.py", "contains", "shop/core.py:make", 1),
    ("run.py", "imports", "shop/app.py", 1),
    ("shop/app.py", "imports", "shop/core.py:Core", 1),
    ("shop/app.py", "imports", "shop/core.py:make", 1),
    ("shop/app.py:App", "inherits", "shop/core.py:Core", 1),
    ("shop/app.py:App.go", "invokes", "shop/core.py:make", 3),
    ("shop/other.py", "imports", "shop/base.py:Base", 1),
    ("shop/other.py:Other", "inherits", "shop/base.py:Base", 1),
]


@pytest.fixture
def place(tmp_path):
    nodes = [{"id": one, "kind": "folder"} for one in ("/", "shop")]
    nodes += [{"id": path, "kind": "file", "text": text} for path, text in sorted(FILES.items())]
    nodes += [{"id": one, "kind": kind, "lines": lines, "bases": bases} for one, kind, lines, bases in DEFINED]
    edges = [dict(zip(("from", "kind", "to", "count"), edge)) for edge in EDGES]
    known = {"target": "shop/core.py", "nodes": nodes, "edges": edges, "similar": [["shop/app.py", 0.5]]}
    (tmp_path / "recube_graph.py").write_text(PLACE.read_text())
    place = tmp_path / "graph.json"
    place.write_text(json.dumps(known))
    return place


@pytest.fixture
def graph(place):
    return tool.load_repo_graph(place)


def run(place, *words):
    done = subprocess.run([sys.executable, "-IB", place.parent / "recube_graph.py", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_entities_are_found_by_name_path_and_part(graph):
    assert tool.search_entities(graph, ["make", "App.go", "run"]) == {
        "make": ["shop/core.py:make"], "App.go": ["shop/app.py:App.go"], "run": ["shop/core.py:Core.run"],
    }  # fmt: skip
    assert tool.search_entities(graph, "core.py") == {"core.py": ["shop/core.py"]}
    assert tool.search_entities(graph, "Oth") == {"Oth": ["shop/other.py", "shop/other.py:Other"]}
    assert tool.search_entities(graph, "nothing") == {"nothing": []}


def test_texts_are_those_of_files_and_of_their_lines(graph):
    assert tool.get_file_content(graph, "shop/core.py") == CORE
    assert tool.get_entity_code(graph, "shop/app.py:App.go") == "    def go(self):\n        return make()"
    assert tool.get_entity_code(graph, "shop/base.py") == FILES["shop/base.py"]
    assert tool.get_entity_code(graph, "shop/base.py:Gone") is None and tool.get_file_content(graph, "gone.py") is None


def test_lists_uses_and_dependencies(graph):
    assert tool.list_files(graph) == sorted(FILES)
    assert tool.list_classes(graph, "shop/core.py") == ["shop/core.py:Core"] and len(tool.list_classes(graph)) == 4
    assert tool.list_functions(graph, "shop/core.py") == ["shop/core.py:Core.run", "shop/core.py:make"]
    assert tool.find_usages(graph, "shop/core.py:make") == {
        "shop/app.py": [("imports", "shop/app.py", "shop/core.py:make"), ("invokes", "shop/app.py:App.go", "shop/core.py:make")]
    }
    assert list(tool.find_usages(graph, "shop/core.py")) == ["shop/app.py"] and len(tool.find_usages(graph, "shop/core.py")["shop/app.py"]) == 4
    assert tool.get_imports_for_file(graph, "shop/app.py") == ["shop/core.py:Core", "shop/core.py:make"]
    assert tool.get_dependencies(graph, "run.py") == {"shop/app.py": 1}
    assert tool.get_dependencies(graph, "run.py", 5) == {"shop/app.py": 1, "shop/core.py": 2}


def test_the_context_names_users_bases_and_neighbours(place):
    code, said, _ = run(place, "context")
    assert (code, said) == (0, """\
Callers of shop/core.py
  shop/app.py
    invokes shop/core.py:make (3)
    imports shop/core.py:Core (1)
    imports shop/core.py:make (1)
Inheritance
  shop/core.py:Core(base.Base); also: shop/other.py:Other
Module
  shop/app.py
  shop/base.py
  shop/other.py
  imported by 1 of these: shop/base.py
Similar files
  shop/app.py (0.50)
""")  # fmt: skip


def test_a_search_without_a_graph_at_hand_reads_that_of_the_task(place):
    words = "import sys; sys.path.insert(0, sys.argv[1]); import recube_graph; print(recube_graph.quick_search('make', 'App'))"
    done = subprocess.run([sys.executable, "-IBc", words, place.parent], capture_output=True, text=True, check=True)
    assert done.stdout == "{'make': ['shop/core.py:make'], 'App': ['shop/app.py:App']}\n"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (CORE, ["still masked: Core.run", "still masked: make"]),
        ("def f():\n    '''Doc.'''\n    if x:\n        raise NotImplementedError\n", []),
        ("if x:\n    def f():\n        '''Doc.'''\n        raise NotImplementedError('x')\n", ["still masked: f"]),
        ("def f(:\n", ["line 1: "]),
        ("x = value value\n# word word\ns = 'word word'\n", ["line 1: ", "a word twice, line 1: value value"]),
    ],
)
def test_what_is_wrong_with_a_file_is_named(place, text, problems):
    file = place.parent / "file.py"
    file.write_text(text)
    code, said, _ = run(place, "validate", str(file))
    lines = said.splitlines()
    assert code == (1 if problems else 0) and len(lines) == max(1, len(problems)), said
    assert all(line.startswith(problem) for line, problem in zip(lines, problems or ["nothing is wrong"])), said


def test_what_cannot_be_read_and_what_is_no_command(place):
    assert run(place, "validate", "/nowhere.py")[0] == 1
    code, said, problem = run(place, "what")
    assert (code, said) == (2, "") and "recube validate FILE" in problem
    assert run(place, "--help")[0] == 0
