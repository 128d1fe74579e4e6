"""What a repository shows about a file that is to be written again: a graph of its files, and commands.

recube context            who uses the file, bases of its classes, files beside it and files like it
recube validate FILE      whether FILE can be parsed, what of it is still masked, words that are there twice

As a module: `graph = load_repo_graph()`, and functions that take it. Nodes are folders, files, classes and functions; an ID is a path,
or `path:Class.method`. Edges are `contains`, `imports`, `invokes` and `inherits`. Nothing of the repository is run.
"""

import ast
import io
import json
import keyword
import os
import sys
import tokenize

PLACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graph.json")
MOST = 10
MOST_EDGES = 5
MOST_SHARED = 15


class Graph:
    def __init__(self, known):
        self.target, self.similar = known["target"], known["similar"]
        self.nodes = {node["id"]: node for node in known["nodes"]}
        self.edges = known["edges"]

    def of_kind(self, *kinds):
        return [node["id"] for node in self.nodes.values() if node["kind"] in kinds]


def file_of(node_id):
    return node_id.split(":", 1)[0]


def load_repo_graph(place=PLACE):
    """The graph of this task."""
    with open(place, encoding="utf-8") as opened:
        return Graph(json.load(opened))


def search_entities(graph, names):
    """IDs by name: of classes and functions whose name or `Class.method` it is, of files whose name or path it is; else of all that
    have it in them, whatever its case."""
    found = {}
    for name in [names] if isinstance(names, str) else names:

        def parts(node_id):
            qualified = node_id.rsplit(":", 1)[-1]
            base = qualified.rsplit("/", 1)[-1]
            return {node_id, qualified, qualified.rsplit(".", 1)[-1] if ":" in node_id else base, base}

        ids = graph.of_kind("file", "class", "function")
        exact = [one for one in ids if name in parts(one)]
        found[name] = exact or [one for one in ids if name.lower() in one.rsplit(":", 1)[-1].lower()]
    return found


def quick_search(*names):
    """The same, without a graph at hand."""
    return search_entities(load_repo_graph(), names)


def get_file_content(graph, file):
    """The text of a file; that of the target is its mask. None of one that the graph lacks."""
    return graph.nodes.get(file, {}).get("text")


def get_entity_code(graph, node_id):
    """The text of a class, a function or a file. None of what the graph lacks."""
    text, lines = get_file_content(graph, file_of(node_id)), graph.nodes.get(node_id, {}).get("lines")
    if text is None or lines is None:
        return get_file_content(graph, node_id)
    whole = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(whole[lines[0] - 1 : lines[1]])


def list_files(graph):
    return graph.of_kind("file")


def list_classes(graph, file=None):
    return [one for one in graph.of_kind("class") if file in (None, file_of(one))]


def list_functions(graph, file=None):
    return [one for one in graph.of_kind("function") if file in (None, file_of(one))]


def find_usages(graph, node_id):
    """Files, by path, that import, call or inherit from an entity (of a file: from anything in it): kind and user of each edge."""
    found = {}
    for edge in graph.edges:
        is_used = edge["to"] == node_id or ":" not in node_id and file_of(edge["to"]) == node_id
        user = file_of(edge["from"])
        if is_used and edge["kind"] != "contains" and user != file_of(node_id):
            found.setdefault(user, []).append((edge["kind"], edge["from"], edge["to"]))
    return dict(sorted(found.items()))


def get_imports_for_file(graph, file):
    """IDs of what a file imports of the repository."""
    return [edge["to"] for edge in graph.edges if edge["kind"] == "imports" and edge["from"] == file]


def get_dependencies(graph, file, depth=1):
    """Files that a file imports or calls into, breadth first: how many steps away each is."""
    used = {}
    for edge in graph.edges:
        if edge["kind"] in ("imports", "invokes"):
            used.setdefault(file_of(edge["from"]), set()).add(file_of(edge["to"]))
    found, now = {file: 0}, [file]
    for step in range(1, depth + 1):
        now = sorted({one for user in now for one in used.get(user, ())} - set(found))
        found.update((one, step) for one in now)
    del found[file]
    return found


def callers(graph):
    """Files that import from the target or call into it: for each the kinds, the entities and the number of edges."""
    users = {}
    for edge in graph.edges:
        if edge["kind"] in ("imports", "invokes") and file_of(edge["to"]) == graph.target != file_of(edge["from"]):
            of_user = users.setdefault(file_of(edge["from"]), {})
            key = (edge["kind"], edge["to"])
            of_user[key] = of_user.get(key, 0) + edge["count"]
    most = sorted(users.items())[:MOST]
    return [(user, sorted(((kind, to, n) for (kind, to), n in of.items()), key=lambda one: -one[2])[:MOST_EDGES]) for user, of in most]


def inheritance(graph):
    """Classes of the target, the bases that they name, and other classes with the same base."""
    found = []
    for own in list_classes(graph, graph.target)[:MOST]:
        for base in graph.nodes[own].get("bases", ()):
            name = base.rsplit(".", 1)[-1]
            others = [
                one for one in graph.of_kind("class")
                if one != own and name in [other.rsplit(".", 1)[-1] for other in graph.nodes[one].get("bases", ())]
            ]  # fmt: skip
            found.append((own, base, others[:MOST]))
    return found


def module(graph):
    """Files of the target's folder, and the files that most of them import."""
    folder = os.path.dirname(graph.target)
    beside = [one for one in list_files(graph) if os.path.dirname(one) == folder and one != graph.target]
    by = {}
    for one in beside:
        for imported in {file_of(to) for to in get_imports_for_file(graph, one)} - {one, graph.target}:
            by[imported] = by.get(imported, 0) + 1
    return beside[:MOST], sorted(by.items(), key=lambda one: (-one[1], one[0]))[:MOST_SHARED]


def context(graph):
    """All of that as lines."""
    lines = ["Callers of " + graph.target]
    for user, edges in callers(graph):
        lines.append("  " + user)
        lines += ["    %s %s (%d)" % edge for edge in edges]
    lines.append("Inheritance")
    for own, base, others in inheritance(graph):
        lines.append("  %s(%s)%s" % (own, base, "; also: " + ", ".join(others) if others else ""))
    beside, shared = module(graph)
    lines += ["Module"] + ["  " + one for one in beside]
    lines += ["  imported by %d of these: %s" % (n, one) for one, n in shared]
    lines += ["Similar files"] + ["  %s (%.2f)" % (path, score) for path, score in graph.similar]
    return lines


def masked(body, names=()):
    """Functions that are not inside another one, and do nothing but raise NotImplementedError."""
    for one in body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = one.body[0]
            has_docstring = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
            rest = one.body[1:] if has_docstring else one.body
            raised = rest[0].exc if len(rest) == 1 and isinstance(rest[0], ast.Raise) else None
            raised = getattr(raised, "func", raised)
            if getattr(raised, "id", None) == "NotImplementedError":
                yield ".".join((*names, one.name))
            continue
        inner = (*names, one.name) if isinstance(one, ast.ClassDef) else names
        for field in ("body", "orelse", "finalbody"):
            yield from masked(getattr(one, field, []), inner)
        for part in [*getattr(one, "handlers", []), *getattr(one, "cases", [])]:
            yield from masked(part.body, inner)


def repeated(text):
    """Words of more than two letters that are there twice in a row, with their lines; strings and comments aside."""
    last = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_word = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
        if is_word and len(token.string) > 2 and token.string == last:
            yield "line %d: %s %s" % (token.start[0], last, last)
        last = token.string


def validate(text):
    """What is wrong with a file, as lines; none where nothing is."""
    problems = []
    try:
        problems = ["still masked: %s" % name for name in masked(ast.parse(text).body)]
    except SyntaxError as error:
        problems = ["line %s: %s" % (error.lineno, error.msg)]
    except (ValueError, RecursionError, MemoryError) as error:
        problems = ["cannot be parsed: %s" % error]
    try:
        problems += ["a word twice, %s" % one for one in repeated(text)]
    except (tokenize.TokenError, SyntaxError):
        pass  # The parser has said it.
    return problems


def main(words):
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if words == ["context"]:
        print("\n".join(context(load_repo_graph())))
        return 0
    if len(words) == 2 and words[0] == "validate":
        try:
            with open(words[1], encoding="utf-8-sig") as opened:
                problems = validate(opened.read())
        except (OSError, UnicodeDecodeError) as error:
            problems = ["cannot be read: %s" % error]
        print("\n".join(problems or ["nothing is wrong"]))
        return 1 if problems else 0
    print(__doc__.strip(), file=sys.stdout if words in (["-h"], ["--help"]) else sys.stderr)
    return 0 if words in (["-h"], ["--help"]) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
