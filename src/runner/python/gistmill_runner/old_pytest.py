"""What pytest before version 7 has otherwise: its paths are those of the library `py`, and its parts have other names."""

import pytest
import _pytest.fixtures
import _pytest.nodes
import _pytest.pathlib
import _pytest.python

VERSION = tuple(map(int, pytest.__version__.split(".")[:2]))
HAS_PATHS = VERSION >= (7, 0)


def path_for(path):
    """A path as this pytest takes it."""
    if HAS_PATHS:
        return path
    import py

    return py.path.local(str(path))


def module(kind, parent, path):
    """A collector of `kind`, a subclass of `pytest.Module`, for a file."""
    if HAS_PATHS:
        return kind.from_parent(parent, path=path)
    if hasattr(kind, "from_parent"):
        return kind.from_parent(parent, fspath=path_for(path))
    return kind(path_for(path), parent)


def move(node, twin):
    """Give a module the path of another."""
    if HAS_PATHS:
        node.path = twin.path
    else:
        node.fspath = twin.fspath


def share_fixtures(parents_of):
    """Have fixtures looked for under all node IDs that `parents_of(node_id, parents)` gives, in the order of pytest's own.

    Since version 8 pytest goes by collectors, from 6.2 on by the IDs that an ID begins with, before by comparing two IDs.
    """
    nodes = _pytest.nodes
    if hasattr(nodes, "iterparentnodeids"):
        parents = nodes.iterparentnodeids
        nodes.iterparentnodeids = lambda node_id: parents_of(node_id, parents)
    elif hasattr(nodes, "ischildnode"):
        is_child = nodes.ischildnode
        nodes.ischildnode = lambda base, node_id: any(is_child(base, one) for one in parents_of(node_id, lambda it: [it]))
        manager = _pytest.fixtures.FixtureManager
        names = manager._getautousenames
        manager._getautousenames = lambda self, node_id: parents_of(node_id, lambda it: names(self, it))


def import_with(instead):
    """Have test modules imported by `instead(path, mode=...)`; returns what takes that back."""
    if hasattr(_pytest.python, "import_path"):
        place, name, call = _pytest.python, "import_path", instead
    else:
        import py

        def call(path, modname=None, ensuresyspath=True):
            return instead(path, mode="append" if ensuresyspath == "append" else "prepend")

        place, name = py.path.local, "pyimport"
    original = getattr(place, name)
    setattr(place, name, call)
    return lambda: setattr(place, name, original)


def package_folder(file):
    """The outermost package that a file is in; None where it is in none."""
    if hasattr(_pytest.pathlib, "resolve_package_path"):
        return _pytest.pathlib.resolve_package_path(file)
    found = path_for(file).pypkgpath()
    return None if found is None else type(file)(str(found))


def name_in_importlib_mode(file, root):
    """The name that `--import-mode=importlib` gives to a test module."""
    name = getattr(_pytest.pathlib, "module_name_from_path", None)
    return file.stem if name is None else name(file, root)
