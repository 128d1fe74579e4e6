"""The location probe: a test module loaded from a file in the root of the tree, all else as it was.

Its ``__file__``, its ``__name__`` and the node IDs of its tests are those of the probe. The fixtures and hooks of the
conftest files that applied to the original, its relative imports, its siblings on the module path and its place among
pytest's collectors stay. Nothing is done to tests that find their own place in another way; that is what is probed.
"""

import _imp
import importlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import _pytest.pathlib

from . import old_pytest


class Probe:
    """The probe of one file process."""

    def __init__(self, root, name):
        self.path = Path(root) / name
        self.name = name
        self.module = name[: -len(".py")]
        self.original = None
        self.original_id = None
        self.moved_id = name
        self.original_module = None
        self.broken = None

    def check(self):
        """Raise when the module did not move: that is the harness's trouble, not the test's."""
        if self.broken is not None:
            raise RuntimeError(self.broken)

    def stand_in_for(self, config, file):
        """From now on the module `file` (relative to the root) is loaded from the probe."""
        self.original = self.path.parent / file
        shutil.copyfile(str(self.original), str(self.path))
        shutil.copystat(str(self.original), str(self.path))
        self._share_conftests(config.pluginmanager)
        self._share_fixtures()
        use_byte_code((str(self.path), self.original))

    # What pytest finds by the path or the node ID of the module, and the probe still has to find.

    def _share_conftests(self, manager):
        find, original = manager._getconftestmodules, old_pytest.path_for(self.original)

        def conftests(path, *arguments, **options):
            return find(original if Path(path) == self.path else path, *arguments, **options)

        manager._getconftestmodules = conftests

    def _share_fixtures(self):
        def with_original(node_id, parents):
            if node_id == self.moved_id or node_id.startswith(self.moved_id + "::"):
                return list(dict.fromkeys(list(parents(self.original_id)) + list(parents(node_id))))
            return parents(node_id)

        old_pytest.share_fixtures(with_original)

    def collector(self, parent, module_path):
        """The collector of the probe, in the place of the original's; None for any other module."""
        if self.original is None or Path(module_path) != self.original:
            return None
        probe = self

        class ProbedModule(pytest.Module):
            """A module that moves when its tests are about to be collected: until then it has to be found."""

            def collect(self):
                probe.original_id = self.nodeid
                # What a module of that path is like, pytest knows best; versions keep the node ID in various
                # attributes.
                twin = old_pytest.module(pytest.Module, self.parent, probe.path)
                old_pytest.move(self, twin)
                self.name = probe.name
                for attribute in ("_nodeid", "_id"):
                    if hasattr(twin, attribute):
                        setattr(self, attribute, getattr(twin, attribute))
                probe.moved_id = twin.nodeid
                if self.nodeid != twin.nodeid:
                    probe.broken = "pytest %s keeps node IDs in a way that is not known here" % pytest.__version__
                return super().collect()

            def _getobj(self):
                with probe._importing():
                    return super()._getobj()

        ProbedModule.__name__ = ProbedModule.__qualname__ = "Module"
        return old_pytest.module(ProbedModule, parent, self.original)

    # Importing.

    @contextmanager
    def _importing(self):
        take_back = old_pytest.import_with(self._import)
        try:
            yield
        finally:
            take_back()

    def _import(self, path, *, mode="prepend", root=None, consider_namespace_packages=False, **options):
        self.original_module = name = self._original_name(str(getattr(mode, "value", mode)), root, consider_namespace_packages)
        package = name.rpartition(".")[0]
        if package:
            try:
                importlib.import_module(package)
            except ModuleNotFoundError:
                _pytest.pathlib.insert_missing_modules(sys.modules, name)
        importlib.invalidate_caches()
        specification = self._specification()
        specification.__class__ = _specification_in(package)
        module = importlib.util.module_from_spec(specification)
        sys.modules[self.module] = module
        try:
            specification.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(self.module, None)
            raise
        return sys.modules[self.module]

    def _original_name(self, mode, root, consider_namespace_packages):
        """The name under which pytest would import the original; puts its folder on the path as pytest would."""
        if mode == "importlib":
            return old_pytest.name_in_importlib_mode(self.original, root)
        resolve = getattr(_pytest.pathlib, "resolve_pkg_root_and_module_name", None)
        if resolve is not None:
            try:
                folder, name = resolve(self.original, consider_namespace_packages=consider_namespace_packages)
            except _pytest.pathlib.CouldNotResolvePathError:
                folder, name = self.original.parent, self.original.stem
        else:
            package = old_pytest.package_folder(self.original)
            folder = self.original.parent if package is None else package.parent
            name = ".".join(self.original.with_suffix("").relative_to(folder).parts)
        folder = str(folder)
        if mode == "append":
            if folder not in sys.path:
                sys.path.append(folder)
        elif sys.path[:1] != [folder]:
            sys.path.insert(0, folder)
        return name

    def _specification(self):
        places = [str(self.path.parent)]
        for finder in sys.meta_path:
            if hasattr(finder, "mark_rewrite"):
                finder.mark_rewrite(self.module)
            specification = finder.find_spec(self.module, places) if hasattr(finder, "find_spec") else None
            if specification is not None and specification.origin == str(self.path):
                return specification
        return importlib.util.spec_from_file_location(self.module, str(self.path))

    # What the driver is told: the group keeps its name, wherever it is loaded from.

    def original_node_id(self, node_id):
        """The node ID that an item of the probe has in its own file."""
        if self.original_id is not None and node_id.startswith(self.moved_id):
            rest = node_id[len(self.moved_id) :]
            if not rest or rest.startswith("::"):
                return self.original_id + rest
        return node_id

    def original_class(self, name):
        """The full name of a class, under the name of the original module."""
        if self.original_module is not None and name.startswith(self.module + "."):
            return self.original_module + name[len(self.module) :]
        return name


def _specification_in(package):
    class Specification(importlib.machinery.ModuleSpec):
        """Relative imports go by the parent; a module of the root would have none."""

        parent = package

    return Specification


def use_byte_code(copied=None):
    """Have pytest take byte code of test modules that was made where they lay before as if it was made here.

    `copied` is the path of a copy and that of its original, whose byte code is the copy's.
    """
    import _pytest.assertion.rewrite as rewrite

    read = rewrite._read_pyc
    copy, original = copied or (None, None)

    def read_as_made_here(source, pyc, *arguments, **options):
        made_of = source
        if os.fspath(source) == copy:
            made_of = original
            pyc = rewrite.get_cache_dir(original) / (original.stem + rewrite.PYC_TAIL)
        code = read(made_of, pyc, *arguments, **options)
        if code is not None:
            _imp._fix_co_filename(code, os.fspath(source))
        return code

    rewrite._read_pyc = read_as_made_here
