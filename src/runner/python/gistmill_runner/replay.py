"""Imports that many texts begin with are made once, in the process that they are forks of, and given to each text when it
asks for them.

What was imported is hidden again: no name in ``sys.modules`` and no attribute of a package tells of it. When a text imports
the first of the modules, that module and all that its import brought come back, in their order, then those of the second, and so
on: a text that forgets an import finds as much as it would find without this. One that imports out of order finds, besides,
what comes before.
"""

import copy
import importlib
import sys
from types import ModuleType


_ABSENT = object()


class _Step:
    """What the import of one name brought."""

    __slots__ = ("modules", "attributes", "notes")

    def __init__(self, modules, attributes, notes):
        #: Name → what was there before and the module, in the order of ``sys.modules``.
        self.modules = modules
        #: Packages that were there before, with each name that now stands for one of the modules: what it stood for, the module.
        self.attributes = attributes
        #: What the watcher of imports noted.
        self.notes = notes

    def hide(self):
        for name, (before, _) in self.modules.items():
            _set(sys.modules, name, before)
        for package, name, before, _ in self.attributes:
            _set(vars(package), name, before)

    def give(self):
        for name, (_, module) in self.modules.items():
            # Last, as what was just imported is.
            sys.modules.pop(name, None)
            sys.modules[name] = module
        for package, name, _, module in self.attributes:
            vars(package)[name] = module


class _Loader:
    """Gives a module that was imported before."""

    def __init__(self, replay, name, module):
        self.replay = replay
        self.name = name
        self.module = module
        self.own = module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.own
        self.replay.give(self.name)


class Replay:
    """Imports modules, hides them, and gives them to whoever imports them.

    A module that cannot be imported ends this: it and what follows are imported when they are asked for. ``watcher`` hears
    of an import when it is given.
    """

    def __init__(self, names, watcher=None):
        self.watcher = watcher
        self.steps = []
        self.given = 0
        for name in dict.fromkeys(prefix for name in names for prefix in _prefixes(name)):
            if name not in sys.modules and not self._import(name):
                break
        for step in reversed(self.steps):
            step.hide()
        #: Name of a module → the number of the step that brings it.
        self.pending = {name: at for at, step in enumerate(self.steps) for name in step.modules}
        sys.meta_path.insert(0, self)

    def _import(self, name):
        """Whether the module was imported, and can be given."""
        before, packages = dict(sys.modules), _packages()
        noted = len(self.watcher.seen) if self.watcher else 0
        try:
            importlib.import_module(name)
        except BaseException:
            if self.watcher:
                del self.watcher.seen[noted:]
            return False
        if getattr(sys.modules.get(name), "__spec__", None) is None:
            return False
        modules = {
            one: (before.get(one, _ABSENT), module)
            for one, module in sys.modules.items()
            if before.get(one, _ABSENT) is not module
        }
        notes = []
        if self.watcher:
            notes = self.watcher.seen[noted:]
            del self.watcher.seen[noted:]
        self.steps.append(_Step(modules, _bound(packages, modules), notes))
        return True

    def find_spec(self, name, path=None, target=None):
        at = self.pending.get(name)
        module = None if at is None else self.steps[at].modules[name][1]
        if getattr(module, "__spec__", None) is None:
            return None
        spec = copy.copy(module.__spec__)
        spec.loader = _Loader(self, name, module)
        return spec

    def give(self, name):
        """Give what was imported up to a module, and with it."""
        last = self.pending.get(name, -1)
        while self.given <= last:
            step = self.steps[self.given]
            self.given += 1
            step.give()
            for one in step.modules:
                del self.pending[one]
            if self.watcher:
                self.watcher.seen += step.notes


def _prefixes(name):
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def _packages():
    """The packages that there are, with what they hold now."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [(module, dict(vars(module))) for module in modules if "__path__" in vars(module)]


def _bound(packages, modules):
    """Names of packages that now stand for one of the modules."""
    new = {id(module) for _, module in modules.values()}
    return [
        (package, name, before.get(name, _ABSENT), value)
        for package, before in packages
        for name, value in vars(package).items()
        if id(value) in new and before.get(name, _ABSENT) is not value
    ]


def _set(names, name, value):
    if value is _ABSENT:
        names.pop(name, None)
    else:
        names[name] = value
