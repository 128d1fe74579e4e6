"""All modules of the tree that a group imported, and what a name means in each.

A meaning is a tuple whose first part is its kind:

    ("symbol", module, name)                 bound by a statement of that module that ran
    ("external", "import", module, name)     `import module`, bound as this name
    ("external", "from", module, name, as)   `from module import name as as`
    ("module", name)                         a module of the tree
    ("alias", name)                          the witness itself, under the name of a module (see `naming`)
    ("builtin", name), ("unknown", module, name)
"""

import ast
import builtins
from collections import defaultdict

from .source import DEFINITIONS, FUNCTIONS, IMPORTS, bound_names, suites

BUILTINS = frozenset(dir(builtins)) | {
    "__name__", "__file__", "__doc__", "__package__", "__spec__", "__path__", "__annotations__", "__builtins__",
}  # fmt: skip


class Binding:
    """A statement that binds a name of a module: a definition, an assignment, a `global`, or an import.

    `target` is, by kind: of "module" a module's name, of "from" (module, name), of "external" a meaning; else None.
    """

    __slots__ = ("kind", "statement", "target")

    def __init__(self, kind, statement, target=None):
        self.kind = kind
        self.statement = statement
        self.target = target


class Imported(Binding):
    """The binding of one name of an import."""

    __slots__ = ("name", "alias")

    def __init__(self, name, kind, statement, target, alias):
        super().__init__(kind, statement, target)
        self.name = name
        self.alias = alias


class Program:
    """The modules of a group by name, and what names mean, given what of them ran."""

    def __init__(self, by_name):
        self.by_name = by_name
        self.modules = sorted({id(one): one for one in by_name.values()}.values(), key=lambda one: one.name)
        self.refresh()

    def refresh(self):
        """What ran has changed."""
        self.bindings = {module.name: self._bindings_of(module) for module in self.modules}

    def imported(self, module, statement):
        """The bindings of an import statement."""
        if isinstance(statement, ast.Import):
            return [self._whole(statement, alias) for alias in statement.names]
        if statement.level == 0 and statement.module == "__future__":
            return []
        origin = self._origin(module, statement)
        own = self.by_name.get(origin)
        found = []
        for alias in statement.names:
            name, below = alias.asname or alias.name, "%s.%s" % (origin, alias.name)
            if alias.name == "*":
                names = self._public(own) if own else []
                found += [Imported(one, "from", statement, (own.name, one), alias) for one in names]
                if own is None:
                    found.append(Imported("*", "external", statement, ("external", "from", origin, "*", "*"), alias))
            elif own:
                found.append(Imported(name, "from", statement, (own.name, alias.name), alias))
            elif below in self.by_name:
                found.append(Imported(name, "module", statement, self.by_name[below].name, alias))
            else:
                target = ("external", "from", origin, alias.name, name)
                found.append(Imported(name, "external", statement, target, alias))
        return found

    def brought(self):
        """Names of the modules that began to run while an import statement of theirs did: all but those imported by name."""
        found = set()
        for module in self.modules:
            for statement in (one for one in ast.walk(module.source.tree) if isinstance(one, IMPORTS) and module.ran(one)):
                began = module.order(statement)
                ended = min((order for order in module.lines.values() if order > began), default=float("inf"))
                names = self._brought_by(module, statement)
                found.update(name for name in names if began < self.by_name[name].first_order() < ended)
        return found

    def _brought_by(self, module, statement):
        """Names of the modules of the tree that an import statement names, packages around them left out."""
        if isinstance(statement, ast.Import):
            names = {alias.name for alias in statement.names}
        else:
            origin = self._origin(module, statement)
            names = {origin} | {"%s.%s" % (origin, alias.name) for alias in statement.names}
        return {self.by_name[name].name for name in names if name in self.by_name}

    def _whole(self, statement, alias):
        top = alias.name.split(".")[0]
        if alias.name in self.by_name or top in self.by_name:
            target = alias.name if alias.asname else top
            target = self.by_name[target].name if target in self.by_name else target
            return Imported(alias.asname or top, "module", statement, target, alias)
        if alias.asname:
            return Imported(alias.asname, "external", statement, ("external", "import", alias.name, alias.asname), alias)
        return Imported(top, "external", statement, ("external", "import", top, top), alias)

    @staticmethod
    def _origin(module, statement):
        if statement.level == 0:
            return statement.module
        parts = module.package.split(".")
        parts = parts[: len(parts) - (statement.level - 1)]
        return ".".join(parts + ([statement.module] if statement.module else []))

    def _public(self, module):
        """What `from module import *` binds."""
        for statement in module.source.tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else ()
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                try:
                    return [str(name) for name in ast.literal_eval(statement.value)]
                except ValueError:
                    break
        names = {name for statement in module.source.tree.body if module.ran(statement) for name in bound_names(statement)}
        return sorted(name for name in names if not name.startswith("_"))

    def _bindings_of(self, module):
        """Bindings of the module's names by the statements that ran."""
        found, failed = defaultdict(list), set(module.failed.values())
        stack = [module.source.tree.body]
        while stack:
            for statement in stack.pop():
                if not isinstance(statement, DEFINITIONS):
                    stack.extend(suites(statement))
                if not module.ran(statement) or statement in failed:
                    continue
                if isinstance(statement, IMPORTS):
                    for one in self.imported(module, statement):
                        found[one.name].append(one)
                elif not (isinstance(statement, ast.AnnAssign) and statement.value is None):
                    kind = "definition" if isinstance(statement, DEFINITIONS) else "assignment"
                    for name in bound_names(statement):
                        found[name].append(Binding(kind, statement))
        for bindings in found.values():
            bindings.sort(key=lambda binding: (binding.statement.lineno, binding.statement.col_offset))
        for node in ast.walk(module.source.tree):
            if isinstance(node, ast.Global):
                for name in node.names:
                    if name not in found:
                        found[name].append(Binding("global", node))
        return dict(found)

    def owner_of(self, module, name):
        """The module whose own a name is that others may import from it."""
        for _ in range(50):
            sources = [one for one in self.bindings[module.name].get(name, ()) if one.kind == "from"]
            if not sources or sources[-1].target[0] not in self.by_name:
                break
            module, name = self.by_name[sources[-1].target[0]], sources[-1].target[1]
        return module

    def resolve(self, name_of_module, name, assigned=(), seen=()):
        """What a name of a module means. `assigned` holds (module, name) whose import has become an assignment."""
        place = (name_of_module, name)
        if place in seen or len(seen) > 50:
            return ("unknown",) + place
        bindings = self.bindings.get(name_of_module, {})
        found = bindings.get(name)
        if not found:
            below = "%s.%s" % place
            if below in self.by_name and self.by_name[name_of_module].is_package:
                return ("module", self.by_name[below].name)
            if name in BUILTINS:
                return ("builtin", name)
            return bindings["*"][0].target if "*" in bindings else ("unknown",) + place
        if place in assigned:
            return ("symbol",) + place
        kinds = {binding.kind for binding in found}
        if kinds <= {"from", "module"}:
            return self.target_of(found[-1], assigned, seen + (place,))
        if kinds == {"external"} and len({binding.target for binding in found}) == 1:
            return found[-1].target
        return ("symbol",) + place

    def target_of(self, binding, assigned=(), seen=()):
        """What an import of the tree means."""
        if binding.kind == "module":
            known = binding.target in self.by_name
            return ("module", binding.target) if known else ("unknown", binding.target, "")
        module, name = binding.target
        meaning = self.resolve(module, name, assigned, seen)
        below = "%s.%s" % (module, name)
        if meaning[0] in ("unknown", "builtin") and below in self.by_name:
            return ("module", self.by_name[below].name)
        return meaning

    def is_defined(self, meaning):
        """Whether a symbol is bound by nothing but definitions."""
        bindings = self.bindings.get(meaning[1], {}).get(meaning[2], ())
        return all(binding.kind == "definition" for binding in bindings)

    def defines_function(self, meaning):
        """Functions of the tree that a symbol stands for."""
        if meaning[0] != "symbol":
            return []
        bindings = self.bindings.get(meaning[1], {}).get(meaning[2], ())
        return [binding.statement for binding in bindings if isinstance(binding.statement, FUNCTIONS)]
