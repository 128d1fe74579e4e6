"""Names in the one namespace of a witness."""

import ast
from collections import defaultdict

from .planned import every
from .program import BUILTINS
from .source import DEFINITIONS, names_of


class Naming:
    """The name of every needed meaning in `final`; what has to change in the closure for names to work in `assigned`
    and `aliases`.
    """

    def __init__(self, closure):
        self.closure = closure
        self.final = {}
        self.assigned = set()
        self.aliases = set()
        self.places = {}
        for at, (_, lines) in enumerate(closure.tops):
            statement = lines[-1].statement
            if isinstance(statement, ast.ClassDef):
                self.places["symbol", lines[-1].module.name, statement.name] = at
        self._weigh()
        self._choose()
        self._see_conflicts()

    def _weigh(self):
        """How much each meaning is used, under which other names, and whether the test function itself uses it."""
        self.weights, self.others, self.tested = defaultdict(int), defaultdict(set), set()
        for reference in self.closure.references:
            if reference.kind in ("name", "chain"):
                self.weights[reference.meaning] += 1
                if reference.module.is_protected(reference.node):
                    self.tested.add(reference.meaning)
                if reference.kind == "name":
                    self.others[reference.meaning].add(reference.name)
        for _, lines in self.closure.tops:
            statement = lines[0].statement
            if isinstance(statement, DEFINITIONS):
                self.weights["symbol", lines[0].module.name, statement.name] += 3 * sum(1 for _ in every(lines))

    def _choose(self):
        """A name for every meaning, where several have one name."""
        rivals = defaultdict(list)
        for meaning in self.closure.needed:
            name = own_name(meaning)
            if name is not None:
                rivals[name].append(meaning)
        hidden = {name for name in BUILTINS.intersection(rivals) if not any(map(self._is_from_builtin, rivals[name]))}
        for name in self._builtins(hidden):
            rivals[name].append(("builtin", name))
        taken = set(rivals)
        for name, meanings in sorted(rivals.items()):
            meanings.sort(key=lambda one: self._rank(one, name, taken))
            self.final[meanings[0]] = name
            for meaning in meanings[1:]:
                self.final[meaning] = self._other_name(meaning, name, taken)
                taken.add(self.final[meaning])

    def _is_from_builtin(self, meaning):
        """Whether a module makes a name of its own of a builtin, as `str = str` does."""
        bindings = self.closure.program.bindings.get(meaning[1], {}).get(meaning[-1], ()) if meaning[0] == "symbol" else ()
        reads = (node for one in bindings if one.kind == "assignment" for node in names_of(one.statement))
        return any(node.id == meaning[-1] and isinstance(node.ctx, ast.Load) for node in reads)

    def _builtins(self, names):
        """Those of the names that stand for a builtin in some module."""
        found = set()
        for _, lines in self.closure.tops if names else ():
            for line in every(lines):
                used = (node for top in line.nodes for node in names_of(top) if node.id in names - found)
                meanings = (self.closure.finder.meaning(line.module, node) for node in used)
                found.update(one[0][1] for one in meanings if one is not None and one[0][0] == "builtin")
        return found

    def _rank(self, meaning, name, taken):
        """Who keeps a name: what pytest looks for, then what the test uses (a referee puts the original test in, which
        says `f` for `module.f`), then a builtin, then the class that is defined last, then what goes by no other name,
        then what is used most. Classes that come before keep their own name as well, see `keeps_own_name`.
        """
        has_other = any(other != name and other not in taken for other in self.others[meaning])
        last = -self.places.get(meaning, -1)
        found_by_name = meaning not in self.closure.pinned, meaning not in self.tested, meaning[0] != "builtin"
        return found_by_name + (last, has_other, -self.weights[meaning], meaning)

    def keeps_own_name(self, meaning):
        """Whether a class can be defined under its own name before another one takes it: what asks for the name of a
        class finds the same.
        """
        later = (one for one in self.final if one != meaning and one[0] == "symbol" and self.final[one] == meaning[2])
        keeper = next(later, None)
        return meaning in self.places and self.places.get(keeper, -1) > self.places[meaning]

    def _other_name(self, meaning, name, taken):
        for other in sorted(self.others[meaning]):
            if other != name and other not in taken and other not in BUILTINS:
                return other
        origin = meaning[1] if meaning[0] == "symbol" else meaning[2] if meaning[0] == "external" else "module"
        origin = origin.rpartition(".")[2].strip("_") or "module"
        tries = ("_%s%s_%s" % (origin, "" if number < 2 else number, name) for number in range(1, 1 << 20))
        return next(one for one in tries if one not in taken)

    def _see_conflicts(self):
        """Names that a rename does not serve: many uses of an `as` import, and names that are hidden where they are used."""
        program, final = self.closure.program, set(self.final.values())
        counts, hidden = defaultdict(int), set()
        for reference in self.closure.references:
            if reference.weak or reference.span is None:
                continue
            place = (reference.module.name, reference.name)
            chosen = self.final.get(reference.meaning)
            if reference.kind == "name" and chosen not in (None, reference.name):
                bindings = program.bindings[place[0]].get(place[1], ())
                if chosen in reference.hidden and bindings:
                    hidden.add(place)
                imported = bindings and all(one.kind == "from" for one in bindings)
                if reference.meaning[0] == "symbol" and imported and place[1] not in final:
                    counts[place] += 1
            elif reference.kind == "chain" and chosen in reference.hidden:
                self.aliases.add(("alias", reference.name))
        often = {}
        for place in sorted(place for place, count in counts.items() if count >= 2):
            often.setdefault(place[1], place)
        self.assigned = (hidden | set(often.values())) - self.closure.finder.assigned
        self.aliases -= self.closure.needed


def own_name(meaning):
    """The name that a meaning has where it is bound; None for what a witness need not name."""
    if meaning[0] == "symbol":
        return meaning[2]
    if meaning[0] == "external":
        name = meaning[4] if meaning[1] == "from" else meaning[3]
        return name if name != "*" else None
    return meaning[1] if meaning[0] == "alias" else None


