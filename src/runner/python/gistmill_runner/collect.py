"""What pytest collected, in the words of the protocol: items, errors, configuration."""

import inspect
import os

from .protocol import clean, printable

_TEXT_LIMIT = 8000


def qualified_name(kind):
    """The full name of a class."""
    return printable("%s.%s" % (getattr(kind, "__module__", "?"), getattr(kind, "__qualname__", kind)))


def tail(text, limit):
    """The last `limit` characters of `text`, without lone surrogates."""
    text = printable(text)
    return text if len(text) <= limit else text[-limit:]


class Describer:
    """Describes items of one session relative to the directory where the entry command runs."""

    def __init__(self, here=None, probe=None):
        import pytest
        from _pytest.unittest import TestCaseFunction

        self._function, self._unittest = pytest.Function, TestCaseFunction
        self._folder, self._file = pytest.Package, pytest.File
        self._here = here or os.getcwd()
        self._probe = probe
        self._files = {}

    def file(self, node):
        """The file of a node relative to the working directory, or an empty string."""
        # Until pytest 7 a node had only the other one.
        path = str(getattr(node, "path", None) or getattr(node, "fspath", None) or "")
        if path not in self._files:
            known = self._probe.original if self._probe is not None and path == str(self._probe.path) else path
            self._files[path] = os.path.relpath(str(known), self._here) if path else ""
        return self._files[path]

    def group(self, item):
        """(file, class names, function name): the identity of the item's group."""
        # Whatever kinds of collectors a plugin puts between the file and the test; the node ID would name them, too, but for
        # a file outside of pytest's root.
        chain = item.listchain()[:-1]
        while chain and (isinstance(chain[0], self._folder) or not isinstance(chain[0], self._file)):
            del chain[0]
        classes = [node.name for node in chain[1:] if node.name != "()"]
        return self.file(item), classes, getattr(item, "originalname", None) or item.name

    def node_id(self, item):
        """The node ID from the working directory.

        pytest's own begins at its root directory, which depends on the command line: for the test of a project inside a
        project it is the inner one's.
        """
        file, given = self.file(item), item.nodeid if self._probe is None else self._probe.original_node_id(item.nodeid)
        if not file or given == file or given.startswith(file + "::"):
            return given
        place, separator, rest = given.partition("::")
        return file + separator + rest

    def item(self, index, item):
        """One item."""
        file, classes, function = self.group(item)
        callspec = getattr(item, "callspec", None)
        is_function = isinstance(item, self._function)
        described = {
            "index": index,
            "node_id": self.node_id(item),
            "file": file,
            "classes": classes,
            "function": function,
            "parameters": None if callspec is None else callspec.id,
            "kind": "function" if is_function else type(item).__name__,
            "markers": sorted({mark.name for mark in item.iter_markers()}),
            "fixtures": list(getattr(item, "fixturenames", ())),
            "line": _line(item),
        }
        defined_in = self._defined_in(item, file) if is_function else None
        if defined_in is not None:
            described["defined_in"] = printable(defined_in)
        return _cleaned(described)

    def _defined_in(self, item, file):
        """``file::Class.function`` of the definition, when it stands in another file of the tree; else None."""
        try:
            function = inspect.unwrap(item.function)
            path = os.path.relpath(function.__code__.co_filename, self._here)
            name = function.__qualname__
        except Exception:
            return None
        if path == file or path.startswith(os.pardir) or path == getattr(self._probe, "name", None):
            return None
        return "%s::%s" % (path, name.replace(".", "::"))

    def error(self, report, exception):
        """A collection report that failed or was skipped whole; `exception` is what was raised, or None."""
        if report.skipped and isinstance(report.longrepr, tuple):
            text = str(report.longrepr[2])
        else:
            text = getattr(report, "longreprtext", "") or str(report.longrepr or "")
        return _cleaned(
            {
                "node_id": report.nodeid,
                "file": report.nodeid.split("::")[0],
                "kind": "skipped" if report.skipped else "error",
                "exception": None if exception is None else qualified_name(type(exception)),
                "text": tail(text, _TEXT_LIMIT),
                "missing_module": missing_module(exception),
            }
        )


def _line(item):
    try:
        line = int(item.location[1]) + 1
    except Exception:
        return None
    return line if 0 < line < 1 << 32 else None


def _cleaned(described):
    for key in ("node_id", "file", "function", "parameters"):
        value = described.get(key)
        if value is not None:
            described[key], lossy = clean(str(value))
            if lossy:
                described["lossy"] = True
    for key in ("classes", "markers", "fixtures"):
        if key in described:
            described[key] = [printable(str(value)) for value in described[key]]
    return described


def missing_module(exception):
    """The name of the module that could not be found, if that is what `exception` says."""
    if isinstance(exception, ModuleNotFoundError) and exception.name:
        return printable(exception.name)
    return None


def cause_of(exception):
    """The exception that pytest wrapped into one of its own collection errors."""
    from _pytest.nodes import Collector

    if isinstance(exception, Collector.CollectError):
        # Until pytest 7 it was raised without `from`.
        return exception.__cause__ or exception.__context__ or exception
    return exception


def failure(exception, text):
    """Why a stage could not be completed."""
    return {
        "exception": None if exception is None else qualified_name(type(exception)),
        "text": tail(text, 4 * _TEXT_LIMIT),
        "missing_module": missing_module(exception),
    }
