"""Which lines of a module a witness has: those that ran, for names that it needs.

What never ran is left out; a function that never started keeps its header. Where only one side of a branch ran, it stands
there alone.
"""

import ast

from .effects import has_effect, is_pure, yields
from .planned import Line, every
from .source import DEFINITIONS, FUNCTIONS, IMPORTS, bound_names, first_line, is_text, names_of

# Where a statement stands.
MODULE, CLASS, FUNCTION = "module", "class", "function"
_WITH_FIELDS = frozenset(("NamedTuple", "TypedDict", "Protocol"))
# Names by which code reads docstrings.
_READS_TEXTS = frozenset(("__doc__", "getdoc"))
# After all that ran, see `Module.order`.
LATE = 1 << 59
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TRIES = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))


def acts(statement):
    """Whether a statement of a command's main block does something: in the witness it comes after all that it may need."""
    if isinstance(statement, DEFINITIONS + IMPORTS) or is_text(statement):
        return False
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return statement.value is not None and not is_pure(statement.value)
    return True


def asks_for_names(module, statement):
    """Whether an `if`, which is evaluated once, asks `"name" not in globals()` or the like: the witness has other names than the module."""
    test, owner = statement.test, module.source.parents[statement]
    while isinstance(owner, ast.stmt):
        if isinstance(owner, _LOOPS):
            return False
        owner = module.source.parents[owner]
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Constant):
        return False
    table = test.comparators[0]
    asks = isinstance(test.ops[0], (ast.In, ast.NotIn)) and isinstance(table, ast.Call)
    return asks and getattr(table.func, "id", "") in ("globals", "locals", "vars", "dir") and not table.args


def _reads(statement, name):
    """Whether a statement reads a name."""
    return any(node.id == name and isinstance(node.ctx, ast.Load) for node in names_of(statement))


def unit_of(module, statement):
    """What names a statement in decisions: where it stands."""
    return (module.name, statement.lineno, statement.col_offset)


class Planner:
    """Plans statements. `wanted` holds the symbols that are needed, `named` all names that planned lines mention."""

    def __init__(self, program, references, options, decisions, test, main=None):
        self.program = program
        self.references = references
        self.options = options
        self.decisions = decisions
        self.test = test
        self.main = main
        self.wanted = set()
        self.named = set()
        self.units = {}
        self.named_by_class = set()
        self.forced = set()
        self.registered = set()
        self.plans = {
            ast.ClassDef: self._class,
            ast.If: self._if,
            ast.With: self._with,
            ast.AsyncWith: self._with,
        }
        self.plans.update((kind, self._function) for kind in FUNCTIONS)
        self.plans.update((kind, self._import) for kind in IMPORTS)
        self.plans.update((kind, self._loop) for kind in _LOOPS)
        self.plans.update((kind, self._try) for kind in _TRIES)
        if hasattr(ast, "Match"):
            self.plans[ast.Match] = self._match

    def all(self):
        """(order of first execution, lines) of every statement of the modules that is wanted, unordered."""
        self.units = {}
        self.named_by_class = set()
        self.forced = set()
        self.registered = set()
        found = []
        for module in self.program.modules:
            for statement in module.source.tree.body:
                lines = self.plan(module, statement, MODULE, 0)
                assigned = [line for line in lines if line.kind == "assigned"]
                found += [(self._bound_after(module, line.detail), [line]) for line in assigned]
                lines = [line for line in lines if line.kind != "assigned"]
                if lines:
                    late = module is self.main and acts(statement)
                    found.append((LATE + statement.lineno if late else self._order(module, statement), lines))
        return found

    def _order(self, module, statement):
        """When a statement ran; of one that imported modules by name, right after these."""
        order = module.order(statement)
        if not self.decisions.made or isinstance(statement, DEFINITIONS + IMPORTS):
            return order
        imports = any(one.kind == "by name" for one in self.references.of(module, statement))
        later = (one for one in map(module.order, module.source.tree.body) if order < one < LATE)
        end = min(later, default=LATE if imports else order)
        made = (self.program.by_name[name] for name in self.decisions.made)
        return max([order] + [self.end_of(one) + 0.2 for one in made if order < one.first_order() < end])

    def end_of(self, module):
        """When the last statement of a module ran, and all was defined that it imports from others; -1 where none ran."""
        bindings = (one for several in self.program.bindings[module.name].values() for one in several)
        imports = (one for one in bindings if isinstance(one.statement, IMPORTS) and one.kind in ("from", "module"))
        bound = (self._bound_after(module, one) for one in imports)
        own = (self._order(module, one) for one in module.source.tree.body if module.order(one) < LATE)
        return max([-1, *own] + [order for order in bound if order < LATE])

    def _bound_after(self, module, binding, seen=()):
        """When an import has bound its name: right after what it stands for, which ran while it was under way."""
        order = module.order(binding.statement)
        meaning = self.program.target_of(binding, self.references.assigned)
        if meaning[0] != "symbol" or meaning in seen:
            return order
        owner = self.program.by_name[meaning[1]]
        for one in self.program.bindings[owner.name].get(meaning[2], ()):
            is_import = isinstance(one.statement, IMPORTS) and one.kind in ("from", "module")
            ran = self._bound_after(owner, one, seen + (meaning,)) if is_import else owner.order(one.statement)
            order = max(order, ran + 0.5 if ran < LATE else order)
        return order

    def plan(self, module, statement, place, index):
        """Lines of one statement, the `index`th of its suite."""
        if unit_of(module, statement) in self.decisions.dropped:
            return []
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return self._constant(module, statement, place, index)
        if isinstance(statement, (ast.Global, ast.Nonlocal)):
            return [Line(module, "declaration", statement, module.source.span(statement))]
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            return self._annotation(module, statement, place)
        return self.plans.get(type(statement), self._simple)(module, statement, place)

    def _suite(self, module, statements, place):
        return [line for index, one in enumerate(statements) for line in self.plan(module, one, place, index)]

    def _is_wanted(self, module, name):
        return ("symbol", module.name, name) in self.wanted

    def _unit(self, module, statement, kind):
        self.units[unit_of(module, statement)] = kind

    @staticmethod
    def _whole(module, statement, kind="simple"):
        return Line(module, kind, statement, module.source.span(statement), nodes=[statement])

    @staticmethod
    def _header(module, statement, first, kind, nodes, suite, start=None, prefix=""):
        """A line up to the `first` statement of its suite."""
        source = module.source
        start = source.start(statement) if start is None else start
        line = first_line(first)
        end = source.start(first) if line == first.lineno else source.starts[line - 1]
        return Line(module, kind, statement, (start, end), prefix=prefix, suite=suite, nodes=nodes)

    # Simple statements.

    def _constant(self, module, statement, place, index):
        if not is_text(statement):
            return [self._whole(module, statement)] if module.ran(statement) and place != MODULE else []
        is_docstring = place != MODULE and index == 0
        if is_docstring and module.is_protected(statement):
            return [self._whole(module, statement, "text")]
        reads_texts = not self.named.isdisjoint(_READS_TEXTS)
        if module is self.main and reads_texts and statement is module.source.tree.body[0]:
            return [self._whole(module, statement, "docstring")]
        if is_docstring and (self.options.most or reads_texts):
            self._unit(module, statement, "text")
            return [self._whole(module, statement, "text")]
        return []

    def _annotation(self, module, statement, place):
        if place != CLASS:
            return []
        if self.options.most or self._makes_field(module, statement):
            self._unit(module, statement, "annotation")
            return [self._whole(module, statement)]
        return []

    @staticmethod
    def _makes_field(module, statement):
        """Whether the annotations of this class are more than that."""
        owner = module.source.parents.get(statement)
        if not isinstance(owner, ast.ClassDef):
            return False
        names = [getattr(base, "id", None) or getattr(base, "attr", "") for base in owner.bases]
        return bool(owner.decorator_list) or bool(_WITH_FIELDS.intersection(names))

    def _simple(self, module, statement, place):
        if not self._ran(module, statement):
            return []
        if place == CLASS:
            self._unit(module, statement, "attribute")
        if place != MODULE:
            return [self._whole(module, statement)]
        names = bound_names(statement)
        if module is self.main and acts(statement):
            self._unit(module, statement, "effect")
            return [self._whole(module, statement)]
        if names:
            if not any(self._is_wanted(module, name) for name in names):
                return []
            if isinstance(statement, ast.AugAssign) and "__all__" in names:
                return []
            return [self._whole(module, statement)]
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            if not self._acts_on_wanted(module, statement):
                return []
            self._unit(module, statement, "effect")
            return [self._whole(module, statement)]
        return [] if isinstance(statement, (ast.Delete, ast.Assert, ast.Pass)) else [self._whole(module, statement)]

    def _acts_on_wanted(self, module, statement):
        """Whether a statement that binds nothing touches something of the tree that is wanted, looking one call deep."""
        if self.options.most:
            return True
        if not isinstance(statement, ast.Expr):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            return self._touches(module, target)
        return self._touches(module, statement.value) or self._reaches(module, statement.value)

    def _touches(self, module, node):
        """Whether a node names something of the tree that is wanted."""
        return any(self._is_needed(reference) for reference in self.references.of(module, node))

    def _is_needed(self, reference):
        return not reference.weak and reference.meaning[0] == "symbol" and reference.meaning in self.wanted

    def _reaches(self, module, node, values=False):
        """Whether a function of the tree that a node names touches something that is wanted; with `values` no definition."""
        for reference in self.references.of(module, node):
            for function in self.program.defines_function(reference.meaning):
                owner = self.program.by_name[reference.meaning[1]]
                for inner in (one for node in function.body for one in self.references.of(owner, node)):
                    if self._is_needed(inner) and not (values and self.program.is_defined(inner.meaning)):
                        return True
        return False

    def _registers(self, module, function):
        """Whether a function that was called hands itself to something that is wanted: `@main.command()`, `@register("x")`."""
        if not function.decorator_list or not module.did_start(function):
            return False
        for decorator in function.decorator_list:
            made = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(made, ast.Attribute):
                hands = self._touches(module, made.value)
            else:
                hands = self._reaches(module, made, values=True)
            if hands:
                self._unit(module, function, "effect")
                self.registered.add(("symbol", module.name, function.name))
                return True
        return False

    def _import(self, module, statement, place):
        if not module.ran(statement):
            return []
        externals, lines = [], []
        for binding in self.program.imported(module, statement):
            if binding.kind == "external":
                if binding.target[2].partition(".")[0] in self.program.by_name:
                    continue  # a module of the tree that the original never imported
                symbol = ("symbol", module.name, binding.name)
                if place != MODULE:
                    externals.append((binding.alias, binding.target, None))
                elif symbol in self.wanted or binding.target in self.wanted:
                    externals.append((binding.alias, binding.target, symbol if symbol in self.wanted else binding.target))
            elif place == MODULE:
                is_assigned = (module.name, binding.name) in self.references.assigned or self._is_rebound(module, binding.name)
                if is_assigned and self._is_wanted(module, binding.name):
                    lines.append(Line(module, "assigned", statement, detail=binding))
            elif not self._names_module_level(module, statement, binding.name):
                lines.append(Line(module, "local", statement, detail=binding))
            elif module.is_protected(statement) and module.scopes.scope_bound_by(statement, binding.name) is None:
                # Imported for what importing it does.
                lines.append(Line(module, "effect", statement, detail=binding))
        if externals:
            lines.insert(0, Line(module, "import", statement, module.source.span(statement), detail=externals))
        return lines

    def _is_rebound(self, module, name):
        """Whether what an imported name stands for is changed by the name: `from .core import kinds`, and `kinds += more`."""
        changes = (one.statement for one in self.program.bindings[module.name][name] if one.kind == "assignment")
        return any(isinstance(one, ast.AugAssign) or _reads(one, name) for one in changes)

    def _names_module_level(self, module, statement, name):
        """Whether every use of a local import can name what it stands for directly."""
        scope = module.scopes.scope_bound_by(statement, name)
        return scope is None or self.references.local_import(module, name, scope) is not None

    # Definitions.

    def _decorators(self, module, statement):
        spans = ((decorator, module.source.span(decorator)) for decorator in statement.decorator_list)
        return [Line(module, "decorator", statement, span, prefix="@", nodes=[node]) for node, span in spans]

    def _function(self, module, statement, place):
        if not module.ran(statement):
            return []
        if place == MODULE and not self._is_wanted(module, statement.name) and not self._registers(module, statement):
            return []
        if any(getattr(one, "attr", getattr(one, "id", "")) == "overload" for one in statement.decorator_list):
            return []
        nodes = [statement.args] + ([statement.returns] if statement.returns else [])
        if module.did_start(statement):
            suite = self._generator(module, statement, self._suite(module, statement.body, FUNCTION))
            if all(line.kind == "declaration" for line in suite) and is_text(statement.body[0]):
                suite = [self._whole(module, statement.body[0], "text")]
        else:
            if place == CLASS and not self._keeps_uncalled(module, statement):
                return []
            suite = [self._whole(module, statement.body[0], "text")] if is_text(statement.body[0]) else []
        header = self._header(module, statement, statement.body[0], "function", nodes, suite)
        return self._decorators(module, statement) + [header]

    def _keeps_uncalled(self, module, method):
        """Whether a method stays that was not called."""
        if unit_of(module, method) in self.named_by_class:
            return True
        if module is self.test and method.name.startswith("test"):
            return False
        return self.options.most or method.name in self.decisions.kept_names

    def _generator(self, module, function, suite):
        """The suite of a function; where it has a `yield` and none is in what ran, one stays, with what it stands in."""
        found = next((one for one in map(yields, function.body) if one is not None), None)
        if found is None:
            return suite
        inner = (line for line in every(suite) if line.kind not in ("function", "class", "decorator"))
        if any(yields(node) is not None for line in inner for node in line.nodes):
            return suite
        place = module.source.statement_of(found)
        while place is not function:
            self.forced.add(place)
            place = module.source.parents[place]
        return self._suite(module, function.body, FUNCTION)

    def _ran(self, module, statement):
        return module.ran(statement) or statement in self.forced

    def _any_ran(self, module, statements):
        return module.any_ran(statements) or any(one in self.forced for one in statements)

    def _class(self, module, statement, place):
        if not module.ran(statement) or (place == MODULE and not self._is_wanted(module, statement.name)):
            return []
        suite = self._class_suite(module, statement)
        if not suite and is_text(statement.body[0]):
            suite = [self._whole(module, statement.body[0], "text")]
        nodes = statement.bases + [keyword.value for keyword in statement.keywords]
        header = self._header(module, statement, statement.body[0], "class", nodes, suite)
        return self._decorators(module, statement) + [header]

    def _class_suite(self, module, statement):
        """The suite of a class, with the methods that its other statements name while it is defined."""
        scope, before = module.scopes.of_class[statement], None
        while True:
            suite = self._suite(module, statement.body, CLASS)
            used = {
                node.id
                for line in suite
                for top in line.nodes
                for node in names_of(top)
                if module.scopes.of.get(node) is scope and isinstance(node.ctx, (ast.Load, ast.Del))
            }
            if used == before:
                return suite
            before = used
            for method in statement.body:
                if isinstance(method, FUNCTIONS) and method.name in used and module.ran(method):
                    self.named_by_class.add(unit_of(module, method))

    # Compound statements.

    def _keeps_guard(self, module, statement, test):
        """Whether a test whose suite never ran stays for what evaluating it does."""
        return self._raised(module, statement) or not is_pure(test) and (self.options.most or has_effect(test))

    def _raised(self, module, statement):
        """Whether it is the last that ran of a `try` that caught something."""
        owner = module.source.parents[statement]
        if not isinstance(owner, _TRIES) or [one for one in owner.body if module.ran(one)][-1:] != [statement]:
            return False
        return any(self._was_caught(module, one) for one in owner.handlers)

    def _if(self, module, statement, place):
        if not self._ran(module, statement):
            return []
        on_one_line = statement.body[0].lineno == statement.lineno
        body_ran = on_one_line or self._any_ran(module, statement.body)
        else_ran = self._any_ran(module, statement.orelse)
        body = self._suite(module, statement.body, place) if body_ran else []
        other = self._suite(module, statement.orelse, place) if else_ran else []
        if place == MODULE and not body and not other:
            return []
        if not body_ran and not self._keeps_guard(module, statement, statement.test):
            return other
        if place == MODULE and body_ran and not on_one_line and not other and asks_for_names(module, statement):
            return body
        if body_ran and not body and not other and is_pure(statement.test):
            return []
        is_elif = module.source.text.startswith("elif", module.source.start(statement))
        line = self._header(module, statement, statement.body[0], "if", [statement.test], body, prefix="if")
        line.span = (line.span[0] + (4 if is_elif else 2), line.span[1])
        return [line] + self._else(module, statement, other)

    def _else(self, module, statement, other):
        """The other side of an `if`: the next `elif` of the chain that is left, if any."""
        if not other:
            return []
        chain, source = [statement], module.source
        while len(chain[-1].orelse) == 1 and source.text.startswith("elif", source.start(chain[-1].orelse[0])):
            chain.append(chain[-1].orelse[0])
        if other[0].kind == "if" and other[0].statement in chain:
            other[0].prefix = "elif"
            return other
        return [Line(module, "else", statement, text="else:", suite=other)]

    def _loop(self, module, statement, place):
        if not self._ran(module, statement):
            return []
        is_while = isinstance(statement, ast.While)
        test = statement.test if is_while else statement.iter
        on_one_line = statement.body[0].lineno == statement.lineno
        ran = on_one_line or self._any_ran(module, statement.body)
        other = self._suite(module, statement.orelse, place) if self._any_ran(module, statement.orelse) else []
        body = self._suite(module, statement.body, place) if ran else []
        names = bound_names(statement)
        if place == MODULE and not body and not any(self._is_wanted(module, name) for name in names):
            return other
        emptied = ran and not body and isinstance(statement, ast.For) and place != MODULE and not on_one_line
        if emptied and not self.options.most and not has_effect(test):
            return other
        if not ran and not self._keeps_guard(module, statement, test):
            return other
        nodes = [test] if is_while else [statement.target, test]
        lines = [self._header(module, statement, statement.body[0], "loop", nodes, body)]
        return lines + ([Line(module, "else", statement, text="else:", suite=other)] if other else [])

    def _with(self, module, statement, place):
        if not self._ran(module, statement):
            return []
        body = self._suite(module, statement.body, place)
        if place == MODULE and not body and not any(self._is_wanted(module, name) for name in bound_names(statement)):
            return []
        nodes = [node for item in statement.items for node in (item.context_expr, item.optional_vars) if node]
        return [self._header(module, statement, statement.body[0], "with", nodes, body)]

    def _try(self, module, statement, place):
        if not module.any_line_ran(statement.lineno, statement.end_lineno) and statement not in self.forced:
            return []
        failed = module.failed.get(statement)
        body = self._suite(module, [one for one in statement.body if one is not failed], place)
        handlers = [(one, self._suite(module, one.body, place)) for one in statement.handlers if self._was_caught(module, one)]
        other = self._suite(module, statement.orelse, place) if self._any_ran(module, statement.orelse) else []
        final = self._suite(module, statement.finalbody, place) if self._any_ran(module, statement.finalbody) else []
        if place == MODULE and not body and not other and not any(suite for _, suite in handlers):
            return []
        if not handlers and not final:
            return body + other
        if failed:
            return body + [line for _, suite in handlers for line in suite] + final
        if other and not handlers:
            body, other = body + other, []
        lines = [Line(module, "try", statement, text="try:", suite=body)]
        for handler, suite in handlers:
            nodes = [handler.type] if handler.type else []
            lines.append(self._header(module, handler, handler.body[0], "except", nodes, suite))
        for text, suite in (("else:", other), ("finally:", final)):
            if suite:
                lines.append(Line(module, text, statement, text=text, suite=suite))
        return lines

    def _was_caught(self, module, handler):
        on_one_line = handler.body[0].lineno == handler.lineno
        return self._any_ran(module, handler.body) or (on_one_line and handler.lineno in module.lines)

    def _match(self, module, statement, place):
        if not self._ran(module, statement):
            return []
        source, cases = module.source, []
        for case in statement.cases:
            if not self._any_ran(module, case.body):
                continue
            start = source.text.rfind("case", 0, source.start(case.pattern))
            nodes = [case.pattern] + ([case.guard] if case.guard else [])
            suite = self._suite(module, case.body, place)
            cases.append(self._header(module, case.body[0], case.body[0], "case", nodes, suite, start))
        if not cases:
            return []
        end = source.text.rfind("case", 0, source.start(statement.cases[0].pattern))
        span = (source.start(statement), end)
        return [Line(module, "match", statement, span, suite=cases, nodes=[statement.subject])]
