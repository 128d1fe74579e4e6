"""The way to a witness that passes: texts to try, and what a trial says about the next one.

A search is a generator: it yields a text, is sent the `Trial` of it, and returns the last text that passed. What decides
is counted in trials, never in seconds: the same trials, the same text.
"""

import ast
import re

from .closure import Closure, Decisions
from .naming import Naming
from .narrowing import narrow, widen
from .planned import Options, every
from .repair import repaired
from .rendering import Rendering
from .source import FUNCTIONS, TEXT, bound_names, names_of

# How the driver begins what it says of a text that asks for modules of the tree.
ASKED = "it asks for "
# Trials that all of a search may take.
TRIALS = 60
_REPAIRS = 8
# Trials for parts that may be superfluous, by their kinds.
_PRUNED = ((("effect", "text", "annotation"), 3), (("attribute",), 4))
_PRUNED_MODULES = 4
# What a table of modules says that lacks one.
_LACKING = re.compile(r"KeyError: '([\w.]+)'")


class Trial:
    """What a text showed: whether it agrees with the original, else how it failed; its lines and functions that ran."""

    def __init__(self, agrees, failure, lines=(), started=()):
        self.agrees = agrees
        self.failure = failure
        self.lines = frozenset(lines)
        self.started = frozenset(started)


class Exhausted(Exception):
    """All trials are used up."""


class Search:
    """Looks for a witness. After `run`, `text` is the last that passed (None for none) and `failures` how levels failed.

    With `places`, code that reads files of the tree beside itself looks for them where they are.
    """

    def __init__(self, program, test, classes, function, submission, places=False):
        self.program = program
        self.test = test
        self.classes = classes
        self.function = function
        self.submission = submission
        self.decisions = Decisions()
        self.options = Options(False, places, False, False, False)
        self.text = None
        self.files = []
        self.level = None
        self.trials = 0
        self.seen = {}
        self.failures = []

    def run(self):
        """Yields texts, is sent their trials."""
        try:
            yield from self._pass()
            if self.text is not None:
                yield from self._narrow(2)
                yield from self._prune()
                yield from self._narrow(1)
        except Exhausted:
            pass
        return self.text

    # Texts and trials.

    def _make(self, decisions=None):
        """The text under these decisions; `closure` and `rendering` are those of the last one made."""
        assigned, aliases = frozenset(), frozenset()
        for _ in range(8):
            self.closure = Closure(
                self.program, self.test, self.classes, self.function, self.options,
                decisions or self.decisions, assigned, aliases,
            )  # fmt: skip
            naming = Naming(self.closure)
            if not naming.assigned and not naming.aliases:
                break
            assigned, aliases = assigned | naming.assigned, aliases | naming.aliases
        self.rendering = Rendering(self.closure, naming, self.submission)
        return self.rendering.text

    def _accept(self, text):
        """A text passed that was just made."""
        self.text = text
        paths = {line.module.source.path for line in self.rendering.lines if line is not None}
        self.files = sorted(path for path in paths if path != TEXT)

    def _try(self, text):
        try:
            compile(text, "witness", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            shown = text.split("\n")[line - 1 : line]
            return Trial(False, "the generated text cannot be parsed: %s: %s" % (error, "".join(shown)))
        if text not in self.seen:
            if self.trials >= TRIALS:
                raise Exhausted
            self.trials += 1
            self.seen[text] = yield text
        return self.seen[text]

    def _passing(self):
        """Tries, and repairs what the message names, until it passes; the trial that passed, or None."""
        for _ in range(_REPAIRS):
            text = self._make()
            trial = yield from self._try(text)
            if trial.agrees:
                self._accept(text)
                return trial
            self.failure = trial.failure
            asks = trial.failure.startswith(ASKED)
            # Texts that name the witness are tried first: where they do not help, names of modules stay names of modules.
            if (self.options.paths and asks) or self.decisions.made:
                by_name = self._found_by_name(trial.failure)
                if by_name:
                    self.options = self.options._replace(paths=False)
                    self.decisions.by_name |= by_name
                    continue
            if asks and not self.options.paths:
                self.options = self.options._replace(paths=True)
                continue
            if self._wants_whole_modules(trial.failure):
                self.options = self.options._replace(whole=True)
                continue
            decisions = repaired(self.decisions, trial.failure, self.closure)
            if decisions is not None:
                self.decisions = decisions
            elif self._uses_modules():
                self.options = self.options._replace(whole=True)
            elif "__name__" in self.closure.planner.named and not self.options.named:
                self.options = self.options._replace(named=True)
            else:
                return None
        return None

    def _imports_by_name(self):
        """Whether a planned line imports a module by a name that is known at run time alone."""
        lines = (line for _, lines in self.closure.tops for line in every(lines))
        return any(
            self.closure.finder.imported_by(line.module, one) is not None
            for line in lines for node in line.nodes for one in ast.walk(node)
        )  # fmt: skip

    def _found_by_name(self, failure):
        """Modules that were imported by name, so far as it is not known: those that no import statement brought, and what a
        failure says is not among them. Packages around others are brought by these.
        """
        if not self._imports_by_name():
            return set()
        known = self.decisions.made
        if known:
            lacking = set(_LACKING.findall(failure)) & set(self.program.by_name)
            return {self.program.by_name[name].name for name in lacking} - known
        found = {one.name for one in self.program.modules if one.lines} - self.program.brought() - {self.test.name}
        return {name for name in found if not any(one.startswith(name + ".") for one in found)}

    def _uses_modules(self):
        """Whether a module is used as a value, of which not all is there."""
        return not self.options.whole and any(one.kind == "module" for one in self.closure.references)

    def _wants_whole_modules(self, failure):
        """Whether a failure is about the witness in the place of a module: `getattr(token, name)`, hooks that a library collects."""
        return self._uses_modules() and any("module '%s'" % name in failure for name in ("__main__", self.submission))

    def _pass(self):
        for level in ("least", "most", "functions"):
            self.options = self.options._replace(most=level == "most", named=False)
            if level == "functions":
                # The tree of a submission lacks what made the original take its way: another one may be taken there.
                for module in self.program.modules:
                    module.fill()
                self.program.refresh()
            trial = yield from self._passing()
            if trial is not None:
                self.level = level
                return
            self.failures.append((level, self.failure))

    # Making it smaller.

    def _narrow(self, times):
        """Made again from what the witness itself ran."""
        for _ in range(times):
            text = self._make()
            trial = yield from self._try(text)
            if not trial.agrees:
                return
            self._accept(text)
            before = self.decisions, self.options
            undo = narrow(self.closure, self.rendering, trial.lines, {line for line, _ in trial.started})
            if undo is None:
                return
            self.program.refresh()
            if self._make() == text:
                self._accept(text)
                return
            if (yield from self._passing()) is None:
                widen(undo)
                self.program.refresh()
                self.decisions, self.options = before
                self._accept(self._make())
                return

    def _prune(self):
        """Parts that are not needed, by halves, as many trials as their kind is worth."""
        yield from self._prune_units(sorted(self.decisions.by_name), _PRUNED_MODULES)
        self._make()
        for kinds, most in _PRUNED:
            units = self.closure.planner.units
            wanted = [unit for unit in sorted(units) if units[unit] in kinds and unit not in self.decisions.dropped]
            if "attribute" in kinds:
                wanted = [unit for unit in wanted if self._is_idle(unit)]
            yield from self._prune_units(wanted, most)

    def _prune_units(self, wanted, most):
        queue, first = [wanted], self.trials
        while queue and self.trials - first < most:
            part = queue.pop(0)
            if not part:
                continue
            decisions = self.decisions.copy()
            decisions.dropped.update(part)
            text = self._make(decisions)
            trial = yield from self._try(text)
            if trial.agrees:
                self.decisions = decisions
                self._accept(text)
            elif len(part) > 1:
                queue += [part[: len(part) // 2], part[len(part) // 2 :]]

    def _is_idle(self, unit):
        """Whether kept code names nothing that a class attribute binds, or it stands for a function that never started."""
        module = self.program.by_name[unit[0]]
        statement = module.source.statements[unit[1:]]
        names = bound_names(statement)
        if any(self._is_stub(module, node) for node in names_of(statement)):
            return True
        special = any(name.startswith("__") and name.endswith("__") for name in names)
        return bool(names) and not special and not any(name in self.closure.planner.named for name in names)

    def _is_stub(self, module, node):
        """Whether a name node of a class attribute stands for a function that never started."""
        if not isinstance(node.ctx, ast.Load):
            return False
        scope = module.scopes.of.get(node)
        binders = scope.binders[node.id] if scope is not None and node.id in scope.bound else ()
        meaning, _ = self.closure.finder.meaning(module, node) or (("local",), None)
        functions = [one for one in binders if isinstance(one, FUNCTIONS)] or self.program.defines_function(meaning)
        owner = module if binders else self.program.by_name.get(meaning[1]) if len(meaning) > 1 else None
        return bool(functions) and owner is not None and not any(owner.did_start(one) for one in functions)
