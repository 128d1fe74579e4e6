"""The lines of a witness: from the test and its fixtures to all that the lines refer to."""

import ast

from .plan import Planner
from .planned import Line, every
from .references import TYPES, References
from .source import remembered

# More rounds than a chain of names is long.
_ROUNDS = 200
# By which a module, or a conftest, makes cases of tests.
CASES_HOOK = "pytest_generate_tests"
_HOOKS = ("setup_", "teardown_", "pytest_generate")


class Decisions:
    """What trials have shown: statements (and modules that are imported by name) that go, names of methods that stay,
    symbols that are needed though no planned line names them, and the names of modules that may be imported by name.
    """

    def __init__(self, dropped=(), kept_names=(), extra=(), by_name=()):
        self.dropped = set(dropped)
        self.kept_names = set(kept_names)
        self.extra = set(extra)
        self.by_name = set(by_name)

    @property
    def made(self):
        """The names of modules that the witness makes for what imports by name."""
        return self.by_name - self.dropped

    def copy(self):
        """The same, to be changed."""
        return Decisions(self.dropped, self.kept_names, self.extra, self.by_name)


class Closure:
    """All that is needed: `tops` are the statements of the witness in order, `references` what they refer to."""

    def __init__(self, program, test, classes, function, options, decisions, assigned=(), aliases=()):
        self.program = program
        self.test = test
        # Without a function it is a command, which begins at what the module does.
        self.asked = (list(classes) + [function])[0]
        self.options = options
        self.lazy = any(one.source.has_future_annotations for one in program.modules)
        main = test if self.asked is None else None
        self.finder = References(
            program, self.lazy, assigned, options.places, options.paths, test if options.named else None,
            decisions.made, main,
        )  # fmt: skip
        self.planner = Planner(program, self.finder, options, decisions, test, main)
        self.pinned, self.looked_up = set(), set()
        self.needed = self._roots(decisions) | set(decisions.extra) | set(aliases)
        if decisions.made:
            self.needed |= {TYPES}.union(*map(self._names_of, decisions.made))
        self.tops = []
        self.references = []
        self._close()

    def _roots(self, decisions):
        """The test, and what pytest finds by itself: fixtures and functions around the test that started."""
        if self.asked is None:
            return set()
        roots = {("symbol", self.test.name, self.asked)}
        for module in self.program.modules:
            is_test = module is self.test
            if not is_test and not is_conftest(module):
                continue
            for function in self._functions(module):
                hook = is_test and (function.name.startswith(_HOOKS) or function.name in ("setup", "teardown"))
                if module.did_start(function) and (hook or is_fixture(module, function)):
                    roots.add(("symbol", module.name, function.name))
            if is_test and "pytestmark" in self.program.bindings[module.name]:
                roots.add(("symbol", module.name, "pytestmark"))
        self.pinned = roots | ({self.cases_made_by()} & decisions.extra)
        return roots

    def cases_made_by(self):
        """The hook of a conftest that pytest asked for cases, where there is one of them and the test's module has none."""
        asked = [
            module
            for module in self.program.modules
            if (module is self.test or is_conftest(module))
            and any(one.name == CASES_HOOK and module.did_start(one) for one in self._functions(module))
        ]
        return ("symbol", asked[0].name, CASES_HOOK) if len(asked) == 1 and asked[0] is not self.test else None

    @staticmethod
    def _functions(module):
        for node in module.source.functions:
            if isinstance(module.source.parents[node], (ast.Module, ast.If, ast.Try)):
                yield node

    def _close(self):
        self.planner.wanted = self.needed
        for _ in range(_ROUNDS):
            tops = self.planner.all()
            needed, named, references = self.needed | self.planner.registered, set(), []
            for _, lines in tops:
                for line in every(lines):
                    for node in line.nodes:
                        references += self.finder.of(line.module, node)
                        named |= names_in(node)
                    if line.kind in ("assigned", "local"):
                        needed.add(self.stands_for(line.detail))
                    elif line.kind == "effect":
                        needed.update({self.stands_for(line.detail)} - {("alias", line.detail.name)})
                    elif line.kind == "import":
                        needed.update(meaning for _, meaning, named in line.detail if named is None)
            needed.update(reference.meaning for reference in references if not reference.weak)
            if self.options.whole:
                values = {one.parts for one in references if one.kind == "module" and not one.weak}
                self.looked_up = {meaning for name in values for meaning in self._names_of(name)}
                needed |= self.looked_up
            done = needed == self.needed and named == self.planner.named
            self.needed, self.planner.named = needed, named
            self.planner.wanted = needed
            if done:
                break
        tops += [self._made(name) for name in sorted(self.finder.by_name)]
        self.tops = sorted(tops, key=lambda top: (top[0], top[1][0].module.name, top[1][0].statement.lineno))
        self.references = references
        self.pinned |= {reference.meaning for reference in references if reference.kind == "listed"} | self.looked_up

    def _names_of(self, name):
        """What a module binds under the name that it keeps in the witness; not what says which names there are, for the
        witness has others.
        """
        for bound in self.program.bindings.get(name, ()):
            meaning = self.finder.resolve(name, bound)
            if meaning[0] == "symbol" and meaning[2] == bound and bound != "__dir__":
                yield meaning

    def _made(self, name):
        """The lines that make a module which is imported by name, after all that it has."""
        module = self.program.by_name[name]
        return self.planner.end_of(module) + 0.1, [Line(module, "made", ast.Pass(lineno=0, col_offset=0))]

    def stands_for(self, binding):
        """What an imported name of the tree is in the witness: the symbol, or an alias for a module."""
        meaning = self.program.target_of(binding, self.finder.assigned)
        return ("alias", binding.name) if meaning[0] == "module" else meaning


def is_conftest(module):
    """Whether a module is one of those that pytest reads beside tests."""
    return module.source.path.rpartition("/")[2] == "conftest.py"


def is_fixture(module, function):
    """Whether a function is decorated as a fixture."""
    texts = (module.source.text[slice(*module.source.span(one))] for one in function.decorator_list)
    return any("fixture" in text for text in texts)


@remembered
def names_in(node):
    """Names that a node reads, attributes and texts in it."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute):
            found.add(one.attr)
        elif isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.add(one.value)
    return found
