"""The level of the runner that makes witnesses: it answers with a text to try, until it has one or gives up."""

import ast
import gc
import os
import sys
import traceback

from .module import Module
from .program import Program
from .scopes import Scopes
from .search import Search, Trial
from .source import DEFINITIONS, FUNCTIONS, TEXT, Source, first_line

# Nested code that is deeper than this is no code that people write.
_DEPTH = 4000
# Characters of a traceback that are told.
_EVIDENCE = 2000
# Largest source that is read, in bytes.
_LARGEST = 8 << 20


class Generator:
    """Serves searches one after the other; parsed files are kept."""

    def __init__(self, server, request):
        self.server = server
        self.root = os.getcwd()
        self.parsed = {}
        self.search = None
        self.steps = None

    def serve(self, request):
        """Answer requests until closed."""
        sys.setrecursionlimit(_DEPTH)
        self.server.channel.send("generator_ready")
        self.server.serve({"generate": self.generate, "tried": self.tried})

    def generate(self, request):
        """Begin with an instance."""
        self._step(self._begin, request)

    def tried(self, request):
        """Go on with what a trial showed."""
        trial = Trial(request["agrees"], request["failure"], request["lines"], [tuple(one) for one in request["started"]])
        self._step(self._send, trial)

    def _begin(self, request):
        if request.get("command"):
            return self._begin_command(request)
        program, test = self._program(request["execution"], request["file"])
        asked = definition(test, request["classes"], request["function"])
        if asked is not None:
            test.protect(asked)
            program.refresh()
        self.search = Search(program, test, request["classes"], request["function"], request["submission"][: -len(".py")], bool(request["execution"]["opened"]))
        self.steps = self.search.run()
        return next(self.steps)

    def _begin_command(self, request):
        """Begin with a command: what the witness is for is its main module."""
        execution, command = request["execution"], request["command"]
        modules = dict(execution["modules"])
        file = modules.pop("__main__", None)
        if file is not None and command["kind"] == "module":
            # As `-m` names it, so that its relative imports are found.
            name = command["name"]
            modules[name + ".__main__" if file.endswith("/__main__.py") and not name.endswith("__main__") else name] = file
        execution = dict(execution, modules=modules)
        if file is not None:
            program, main = self._program(execution, file)
        else:
            program, _ = self._program(execution, None)
            main = text_module(main_text(command, program), program)
            program = Program({**program.by_name, main.name: main})
        self.search = Search(program, main, [], None, "__main__", bool(execution["opened"]))
        self.steps = self.search.run()
        return next(self.steps)

    def _send(self, trial):
        return self.steps.send(trial)

    def _step(self, step, argument):
        try:
            text = step(argument)
        except StopIteration as end:
            self._end(end.value)
        except Exception:
            # Code that it cannot read (too deep, no Python) is no reason to fail the next instance.
            self._give_up(traceback.format_exc()[-_EVIDENCE:])
        else:
            self.server.channel.send("candidate", text=text)

    def _end(self, text):
        search, self.search, self.steps = self.search, None, None
        self.server.channel.send(
            "generated",
            text=text,
            level=search.level,
            trials=search.trials,
            failures=[list(one) for one in search.failures],
            files=search.files,
            twins=twins(search.closure),
            compiled=compiled(search.closure.program, self.modules),
        )
        gc.collect()

    def _give_up(self, why):
        self.search = self.steps = None
        self.server.channel.send(
            "generated", text=None, level=None, trials=0, failures=[["generator", why]], files=[], twins=[], compiled=[]
        )

    # The program of a trace.

    def _program(self, execution, file):
        self.modules = execution["modules"]
        names = {}
        for name in sorted(execution["modules"], key=lambda name: (len(name), name)):
            names.setdefault(execution["modules"][name], []).append(name)
        for path in execution["files"]:
            names.setdefault(path, [path[: -len(".py")].replace("/", ".")])
        by_name, by_file = {}, {}
        for path, known in sorted(names.items()):
            if path.endswith(".py"):
                ran = execution["files"].get(path, {"lines": [], "started": []})
                module = by_file[path] = self._module(known[0], path, ran)
                by_name.update((name, module) for name in known if name not in by_name)
        return Program(by_name), by_file.get(file)

    def _module(self, name, path, ran):
        if path not in self.parsed:
            with open(os.path.join(self.root, path), "rb") as file:
                source = Source(path, file.read(_LARGEST))
            self.parsed[path] = source, Scopes(source.tree)
        source, scopes = self.parsed[path]
        varying = ran.get("varying", {"lines": (), "started": ()})
        varying = varying["lines"], {tuple(one) for one in varying["started"]}
        return Module(name, source, scopes, dict(ran["lines"]), {tuple(one) for one in ran["started"]}, varying)


def open_generator(server, request):
    """The work of the level."""
    Generator(server, request).serve(request)


def text_module(text, program):
    """A main module that is not a file of the tree, and ran as a whole, after all others."""
    source = Source(TEXT, text.encode("utf-8"))
    last = max((order for module in program.modules for order in module.lines.values()), default=0)
    lines = {number: last + number for number in range(1, len(source.lines) + 1)}
    started = {(first_line(one), one.name) for one in ast.walk(source.tree) if isinstance(one, FUNCTIONS)}
    return Module("__main__", source, Scopes(source.tree), lines, started)


def main_text(command, program):
    """What a command runs that has no file of the tree: its text, or what its script calls."""
    if command["kind"] == "code":
        return command["text"]
    with open(os.path.join(os.path.dirname(sys.executable), command["name"]), "rb") as file:
        source = Source(TEXT, file.read(_LARGEST))
    own, call = [], None
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module in program.by_name:
            own.append(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "exit" and node.args:
            call = node.args[0]
    if not own or call is None:
        raise ValueError("the script %s does not call a function of the tree" % command["name"])
    texts = [source.text[slice(*source.span(node))] for node in own]
    return "import sys\n%s\nsys.exit(%s)\n" % ("\n".join(texts), source.text[slice(*source.span(call))])


def definition(module, classes, function):
    """The definition of a test, by its class chain; None where it is inherited or made otherwise."""
    body = module.source.tree.body
    for name in list(classes) + [function]:
        found = [one for one in body if isinstance(one, DEFINITIONS) and one.name == name]
        if not found:
            return None
        body = found[-1].body
    return found[-1]


def twins(closure):
    """Names under which the witness needs two classes of the original."""
    found = {}
    for meaning in closure.needed:
        if meaning[0] == "symbol":
            bindings = closure.program.bindings.get(meaning[1], {}).get(meaning[2], ())
            if any(type(binding.statement).__name__ == "ClassDef" for binding in bindings):
                found.setdefault(meaning[2], []).append(meaning[1])
    return sorted(name for name, modules in found.items() if len(modules) > 1)


def compiled(program, modules):
    """Names under which modules of the tree have what is compiled: those of imports of it and from it, and its modules' own."""
    found = {name for name, file in modules.items() if not file.endswith(".py")}
    names = {name.rpartition(".")[2] for name in found}
    for name, bindings in (one for of_module in program.bindings.values() for one in of_module.items()):
        if any(imported_from(binding) in found for binding in bindings):
            names.add(name)
    return sorted(names)


def imported_from(binding):
    """The module that an import binds, or from which it binds a name; None for a binding that is no import."""
    if binding.kind == "from":
        return "%s.%s" % binding.target
    if binding.kind == "external":
        return binding.target[2]
    return binding.target
