"""What the nodes of a syntax tree refer to."""

import ast
import re

from .source import IMPORTS, remembered

# Calls whose text arguments name things by their dotted path, or an attribute of a module.
_BY_NAME = frozenset(("setattr", "delattr", "patch", "object", "getattr", "hasattr", "import_module", "import_string"))

_MARKERS = frozenset(("ClassVar", "InitVar", "KW_ONLY"))
# What a place is made with.
PATHS = ("external", "import", "os", "os")
# What the folder of a package is made with, and calls that look into it: how many arguments each takes, and what reads the file.
FOLDERS = ("external", "import", "pathlib", "pathlib")
_RESOURCES = {"files": (1, ""), "read_text": (2, ".read_text(\"utf-8\")"), "read_binary": (2, ".read_bytes()"), "get_data": (2, ".read_bytes()")}
# Modules that are imported by name, by their names, and what they are made with.
BY_NAME = ("by name",)
TYPES = ("external", "import", "types", "types")
# The witness itself, where a text names the module that it imports from.
WITNESS = ("witness",)
# A text that is code which imports from a module, or a part of such code.
# Written down, a line may begin right behind the `n` of its escape.
IMPORTED_FROM = re.compile(r"(?:\b|(?<=\\n))from\s+([\w.]+)\s+import\b[ \t]*(\([\w\s,]*|[\w, \t]*)")
_PATH = re.compile(r"\w+(\.\w+)+")


class Everything:
    """A set of all names."""

    def __contains__(self, name):
        return True


class Reference:
    """One reference.

    `kind` is "place" (`__file__`), "resource" (a call that looks into the folder of a package; `parts` has the way there and what reads
    it), "name" (a name), "chain" (`package.module.name`, of which `span` covers all), "module" (a module as a value, `parts` is its name),
    "dotted" (a text with a dotted path; `parts` has the text and what follows the name in it), "attribute" (a text that
    names an attribute of a module), "by name" (what stands before and behind the name of a module, which is
    imported by it; `parts` is what stands there instead), "origin" (a text that imports from modules), "called" (`__name__`), "text" (`__doc__`), or "listed" (a name that such a text may import).
    `hidden` are the names that scopes around it hide. A `weak` one is not evaluated: it stands in this `annotation`.
    """

    __slots__ = ("meaning", "module", "node", "span", "hidden", "kind", "annotation", "parts")

    def __init__(self, meaning, module, node, span, hidden, kind, parts=None):
        self.meaning = meaning
        self.module = module
        self.node = node
        self.span = span
        self.hidden = hidden
        self.kind = kind
        self.annotation = None
        self.parts = parts

    @property
    def weak(self):
        """Whether it is not evaluated."""
        return self.annotation is not None

    @property
    def name(self):
        """The name that stands in the source."""
        return getattr(self.node, "id", None) or getattr(self.node, "attr", None)


@remembered
def chain(node):
    """(name node, attribute nodes outward) of `a.b.c`; None for anything else."""
    attributes = []
    while isinstance(node, ast.Attribute):
        attributes.append(node)
        node = node.value
    return (node, attributes[::-1]) if isinstance(node, ast.Name) else None


def marker_of(annotation):
    """The name by which a dataclass knows that an annotation makes no field: it is looked up even where annotations are
    texts.
    """
    head = chain(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
    last = (head[1] or [None])[-1] if head else None
    return head[0] if head and getattr(last, "attr", head[0].id) in _MARKERS else None


def is_key(node):
    """Whether a node is the key of `sys.modules[…]`."""
    place = chain(node.value) if isinstance(node, ast.Subscript) else None
    return bool(place and place[1]) and place[1][-1].attr == "modules"


class References:
    """Finds references, given what names mean.

    `begins`, where it is given, is the module that the witness begins in: in all others `__name__` is a reference.
    `lazy` says that annotations are not evaluated, `places` that `__file__` is a reference, `texts` that every text is one
    which names something of the tree by its path, or holds code that imports from the tree; `by_name` are modules that
    are imported by name; the docstring of `main` is that of the witness.
    """

    def __init__(self, program, lazy, assigned, places=False, texts=False, begins=None, by_name=(), main=None):
        self.program = program
        self.by_name = frozenset(by_name)
        self.begins = begins
        self.main = main
        self.places = places
        self.texts = texts
        self.lazy = lazy
        self.assigned = frozenset(assigned)
        self._known = {}

    def resolve(self, module, name):
        """What a name of a module means."""
        return self.program.resolve(module, name, self.assigned)

    def of(self, module, root):
        """All references of a node and what is in it."""
        known = self._known.get(root)
        if known is None:
            known = []
            self._collect(module, root, known, root if self._is_unevaluated(module, root) else None)
            self._known[root] = known
        return known

    def _is_unevaluated(self, module, node):
        return (self.lazy and node in module.scopes.annotations) or node in module.scopes.unevaluated

    def _collect(self, module, root, found, annotation):
        stack, marker = [root], marker_of(annotation)
        while stack:
            node = stack.pop()
            if annotation is None and self._is_unevaluated(module, node):
                self._collect(module, node, found, node)
                continue
            before = len(found)
            name = self.imported_by(module, node) if self.by_name else None
            if name is not None:
                self._import(module, node, name, found)
                stack.append(name)
                continue
            if isinstance(node, ast.Attribute) and self._chain(module, node, found):
                pass
            elif self.places and isinstance(node, ast.Call) and self._resource(module, node, found):
                pass
            elif isinstance(node, ast.Name):
                self._name(module, node, found)
            elif isinstance(node, ast.Constant):
                if self.texts and isinstance(node.value, str) and node.lineno not in module.protected:
                    self._text(module, node, found)
            else:
                if isinstance(node, ast.Call):
                    self._texts(module, node, found)
                stack.extend(ast.iter_child_nodes(node))
            for reference in found[before:]:
                reference.annotation = None if reference.node is marker else annotation

    def _chain(self, module, node, found):
        parts = chain(node)
        meaning, hidden = (self.meaning(module, parts[0]) if parts else None) or (None, None)
        if meaning is None or meaning[0] != "module":
            return False
        root, attributes = parts
        current, used, last, modules = meaning[1], None, None, []
        for attribute in attributes:
            following = self.resolve(current, attribute.attr)
            if following[0] == "module":
                current = following[1]
                modules.append((attribute, current))
                continue
            used, last = following, attribute
            break
        if used and used[0] in ("symbol", "external"):
            stores = isinstance(last.ctx, (ast.Store, ast.Del)) and module.scopes.of[root].kind != "module"
            span = (module.source.span(root)[0], module.source.span(last)[1])
            found.append(Reference(used, module, root, span, Everything() if stores else hidden, "chain"))
        else:
            # The text stays: the witness goes by the name of each of these modules.
            found.append(Reference(("alias", root.id), module, root, module.source.span(root), hidden, "module", meaning[1]))
            for attribute, stands_for in modules:
                end = module.source.span(attribute)[1]
                span = (end - len(attribute.attr), end)
                found.append(Reference(("alias", attribute.attr), module, attribute, span, frozenset(), "module", stands_for))
        return True

    def _name(self, module, node, found):
        meaning, hidden = self.meaning(module, node) or (("builtin",), None)
        if meaning[0] == "module":
            found.append(Reference(("alias", node.id), module, node, module.source.span(node), hidden, "module", meaning[1]))
        elif meaning[0] == "fallback":
            found.append(Reference(meaning[1], module, node, None, hidden, "name"))
        elif meaning[0] in ("symbol", "external"):
            found.append(Reference(meaning, module, node, module.source.span(node), hidden, "name"))
        elif meaning == ("builtin", "__name__") and self.begins not in (None, module) and not is_key(module.source.parents[node]):
            found.append(Reference(WITNESS, module, node, module.source.span(node), hidden, "called"))
        elif meaning == ("builtin", "__doc__") and module is not self.main and self._is_global(module, node):
            owner = self.program.owner_of(module, node.id)
            found.append(Reference(WITNESS, module, node, module.source.span(node), hidden, "text", owner.name))
        elif meaning == ("builtin", "__file__") and self.places and node.lineno not in module.protected:
            if "/" in module.source.path:
                span = module.source.span(node)
                found.append(Reference(PATHS, module, node, span, hidden, "place"))

    def _is_global(self, module, node):
        """Whether a name is looked up in the module: a class has a `__doc__` of its own."""
        scope = module.scopes.of[node]
        return scope.kind != "class" and module.scopes.lookup(node.id, scope)[0] is None

    def meaning(self, module, node):
        """(what a name node means, names that scopes hide from it); None for a local name."""
        scope = module.scopes.of.get(node)
        if scope is None:
            return None
        binder, hidden = module.scopes.lookup(node.id, scope)
        if binder is None:
            return self.resolve(module.name, node.id), hidden
        local = self.local_import(module, node.id, binder)
        if local is not None:
            _, hidden = module.scopes.lookup("", scope)
            return local, hidden - {node.id}
        if binder.kind == "class":  # may be looked up in the module at run time
            meaning = self.resolve(module.name, node.id)
            if meaning[0] in ("symbol", "external"):
                return ("fallback", meaning), frozenset()
        return None

    def local_import(self, module, name, scope):
        """What a local name means that is bound by nothing that ran but an import of the tree; else None."""
        binders = [one for one in scope.binders[name] if not (isinstance(one, ast.stmt) and not module.ran(one))]
        imports = [one for one in binders if isinstance(one, IMPORTS)]
        if not imports or any(not isinstance(one, IMPORTS + (ast.ExceptHandler,)) for one in binders):
            return None
        for statement in imports:
            for binding in self.program.imported(module, statement):
                if binding.name == name and binding.kind in ("module", "from"):
                    return self.program.target_of(binding, self.assigned)
        return None

    def _resource(self, module, call, found):
        """A call such as `importlib.resources.files("package")`, whose package is not there to be asked."""
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        count, reads = _RESOURCES.get(name, (0, ""))
        if not count or len(call.args) != count or call.keywords or call.lineno in module.protected:
            return False
        package = self.program.by_name.get(self._package(module, call.args[0]))
        if package is None or not package.source.path.endswith("/__init__.py"):
            return False
        parts = package.source.path.split("/")[:-1]
        if count == 2:
            file = call.args[1]
            if not isinstance(file, ast.Constant) or not isinstance(file.value, str):
                return False
            parts = parts + [file.value]
        found.append(Reference(FOLDERS, module, call, module.source.span(call), frozenset(), "resource", (parts, reads)))
        return True

    def _package(self, module, node):
        """The name of the package that an argument stands for, or None."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name) and self.meaning(module, node) in (None, (("builtin", node.id), frozenset())):
            return {"__name__": module.name, "__package__": module.package}.get(node.id)
        return self.module_of(module, node)

    def imported_by(self, module, node):
        """The name in a call that imports the module of that name, whatever it is at run time; else None."""
        if not isinstance(node, ast.Call) or not node.args or node.lineno in module.protected:
            return None
        if isinstance(node.args[0], ast.Constant) and node.args[0].value not in self.program.by_name:
            return None
        head = chain(node.func)
        meaning = (self.meaning(module, head[0]) if head else None) or (("local",), None)
        path = [attribute.attr for attribute in head[1]] if head else []
        dotted = list(meaning[0][2:4] if meaning[0][:2] == ("external", "from") else meaning[0][2:3]) + path
        if dotted == ["importlib", "import_module"] and len(node.args) + len(node.keywords) == 1:
            return node.args[0]
        # Without a list of names it is the outermost package.
        names = [one.value for one in node.keywords if one.arg == "fromlist"] + node.args[3:4]
        return node.args[0] if meaning[0] == ("builtin", "__import__") and names else None

    def _import(self, module, call, name, found):
        (first, last), (start, end) = module.source.span(call), module.source.span(name)
        for span, text in (((first, start), "["), ((end, last), "]")):
            found.append(Reference(BY_NAME, module, call, span, frozenset(), "by name", text))

    def _texts(self, module, call, found):
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name not in _BY_NAME:
            return
        for argument in call.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                self._dotted(module, argument, found)
        if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and isinstance(call.args[1].value, str):
            owner = self.module_of(module, call.args[0])
            meaning = self.resolve(owner, call.args[1].value) if owner else ("unknown",)
            if meaning[0] in ("symbol", "external"):
                found.append(Reference(meaning, module, call.args[1], None, frozenset(), "attribute"))

    def _text(self, module, node, found):
        """A text that stands anywhere."""
        if _PATH.fullmatch(node.value):
            self._dotted(module, node, found)
        for name, imported in IMPORTED_FROM.findall(node.value):
            origin = self.program.by_name.get(name)
            if origin is None:
                continue
            found.append(Reference(WITNESS, module, node, module.source.span(node), frozenset(), "origin"))
            for one in sorted(set(re.findall(r"\w+", imported)) | origin.listed_names()):
                meaning = self.resolve(origin.name, one)
                if meaning[0] in ("symbol", "external"):
                    found.append(Reference(meaning, module, node, None, frozenset(), "listed"))

    def _dotted(self, module, node, found):
        parts = node.value.split(".")
        for size in range(len(parts) - 1, 0, -1):
            owner = self.program.by_name.get(".".join(parts[:size]))
            if owner is None:
                continue
            meaning = self.resolve(owner.name, parts[size])
            if meaning[0] in ("symbol", "external"):
                span = module.source.span(node)
                rest = (node.value, parts[size + 1 :])
                found.append(Reference(meaning, module, node, span, frozenset(), "dotted", rest))
            return

    def module_of(self, module, node):
        """The name of the module of the tree that an expression stands for, or None."""
        parts = chain(node)
        meaning = self.meaning(module, parts[0]) if parts else None
        if not meaning or meaning[0][0] != "module":
            return None
        current = meaning[0][1]
        for attribute in parts[1]:
            following = self.resolve(current, attribute.attr)
            if following[0] != "module":
                return None
            current = following[1]
        return current
