"""What a failure asks for: the names in its message."""

import re

_PATTERNS = [
    re.compile(pattern, re.M)
    for pattern in (
        r"NameError: name '(\w+)' is not defined",
        r"has no attribute '(\w+)'",
        r"AttributeError: (\w+)$",
        r"fixture '(\w+)' not found",
        r"cannot access free variable '(\w+)'",
        r"cannot import name '(\w+)'",
        r"without an implementation for abstract methods? '(\w+)'",
        r"abstract methods? '?(\w+)",
    )
]
_ABSTRACT = re.compile(r"abstract methods? ([^\n]*)")
_QUOTED = re.compile(r"'(\w+)'")
# Where a decorator asks for one of several methods.
_ANY_OF = {"must define at least one ordering operation": ("__lt__", "__le__", "__gt__", "__ge__")}


def missing_names(failure):
    """Names that a failure says are not there."""
    found = {name for part in _ABSTRACT.findall(failure) for name in _QUOTED.findall(part)}
    found.update(name for text, names in _ANY_OF.items() if text in failure for name in names)
    return found.union(*(pattern.findall(failure) for pattern in _PATTERNS))


def repaired(decisions, failure, closure):
    """Decisions under which what a failure names is there; None where it names nothing new."""
    decided, new = decisions.copy(), False
    for name in sorted(missing_names(failure)):
        if name not in decided.kept_names:
            decided.kept_names.add(name)
            new = True
        for module in closure.program.modules:
            if name in closure.program.bindings[module.name]:
                meaning = closure.finder.resolve(module.name, name)
                if meaning[0] == "symbol" and meaning not in closure.needed and meaning not in decided.extra:
                    decided.extra.add(meaning)
                    new = True
    cases = closure.cases_made_by() if "fixture '" in failure else None
    if cases is not None and cases not in closure.needed:
        decided.extra.add(cases)
        new = True
    return decided if new else None
