"""Which scope each name of a file is looked up in."""

import ast
from collections import defaultdict

from .source import DEFINITIONS, FUNCTIONS, arguments_of, bound_names, stored_names, suites

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Scope:
    """A scope: the names that it binds, with the statements that do."""

    __slots__ = ("kind", "parent", "bound", "declared", "nonlocals", "binders")

    def __init__(self, kind, parent):
        self.kind = kind
        self.parent = parent
        self.bound = set()
        self.declared = set()
        self.nonlocals = set()
        self.binders = defaultdict(list)

    def bind(self, name, by):
        """`by` binds a name."""
        self.bound.add(name)
        self.binders[name].append(by)


class Scopes:
    """The scopes of a syntax tree: `of` names them by name node, `of_class` by class; `annotations` holds the nodes
    inside annotations, `unevaluated` the annotations of local variables, which nothing evaluates.
    """

    def __init__(self, tree):
        self.of = {}
        self.annotations = set()
        self.unevaluated = set()
        self.of_class = {}
        self.module = Scope("module", None)
        self._body(tree.body, self.module)
        self._nodes = defaultdict(list)
        for node in self.of:
            self._nodes[node.id].append(node)

    def lookup(self, name, scope):
        """(the scope that binds a name, None for the module's; the names that scopes on the way to it hide)."""
        hidden, first = set(), True
        while scope is not None and scope.kind != "module":
            if scope.kind == "function" or first:
                if name in scope.declared:
                    break
                if name in scope.bound and name not in scope.nonlocals:
                    return scope, hidden
                if scope.kind == "function":
                    hidden |= scope.bound
            first = False
            scope = scope.parent
        return None, hidden

    def scope_bound_by(self, statement, name):
        """The scope in which a name is used that this statement binds locally; None where it is not used."""
        for node in self._nodes[name]:
            binder, _ = self.lookup(name, self.of[node])
            if binder is not None and statement in binder.binders[name]:
                return binder
        return None

    def _body(self, statements, scope):
        self._collect(statements, scope)
        scope.bound -= scope.declared | scope.nonlocals
        for statement in statements:
            self._visit(statement, scope)

    def _collect(self, statements, scope):
        for statement in statements:
            for name in bound_names(statement):
                scope.bind(name, statement)
            if isinstance(statement, ast.Global):
                scope.declared.update(statement.names)
            elif isinstance(statement, ast.Nonlocal):
                scope.nonlocals.update(statement.names)
            if isinstance(statement, DEFINITIONS):
                continue
            for handler in getattr(statement, "handlers", ()):
                if handler.name:
                    scope.bind(handler.name, handler)
            for case in getattr(statement, "cases", ()):
                for node in ast.walk(case.pattern):
                    name = getattr(node, "name", None) or getattr(node, "rest", None)
                    if isinstance(name, str):
                        scope.bind(name, statement)
            for suite in suites(statement):
                self._collect(suite, scope)
            self._walruses(statement, scope)

    def _walruses(self, statement, scope):
        stack = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Lambda):
                continue
            if isinstance(node, ast.NamedExpr):
                scope.bind(node.target.id, statement)
            stack.extend(ast.iter_child_nodes(node))

    def _visit(self, node, scope):
        if isinstance(node, FUNCTIONS + (ast.Lambda,)):
            self._function(node, scope)
        elif isinstance(node, ast.ClassDef):
            for part in node.decorator_list + node.bases + [keyword.value for keyword in node.keywords]:
                self._visit(part, scope)
            inner = self.of_class[node] = Scope("class", scope)
            self._body(node.body, inner)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, scope)
        elif isinstance(node, ast.AnnAssign):
            self._visit(node.target, scope)
            self._annotation(node.annotation, scope)
            if scope.kind == "function":
                self.unevaluated.add(node.annotation)
            if node.value:
                self._visit(node.value, scope)
        elif isinstance(node, ast.Name):
            self.of[node] = scope
        else:
            for child in ast.iter_child_nodes(node):
                self._visit(child, scope)

    def _function(self, node, scope):
        for decorator in getattr(node, "decorator_list", ()):
            self._visit(decorator, scope)
        for default in node.args.defaults + [one for one in node.args.kw_defaults if one]:
            self._visit(default, scope)
        inner = Scope("function", scope)
        for argument in arguments_of(node):
            if argument.annotation:
                self._annotation(argument.annotation, scope)
            inner.bind(argument.arg, node)
        for parameter in getattr(node, "type_params", ()):
            inner.bind(parameter.name, node)
        if getattr(node, "returns", None):
            self._annotation(node.returns, scope)
        if isinstance(node, ast.Lambda):
            self._visit(node.body, inner)
        else:
            self._body(node.body, inner)

    def _comprehension(self, node, scope):
        inner = Scope("function", scope)
        for generator in node.generators:
            for name in stored_names(generator.target):
                inner.bind(name, node)
        for position, generator in enumerate(node.generators):
            self._visit(generator.iter, inner if position else scope)
            for part in [generator.target] + generator.ifs:
                self._visit(part, inner)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._visit(part, inner)

    def _annotation(self, node, scope):
        self.annotations.update(ast.walk(node))
        self._visit(node, scope)
