"""Notes what a run reaches for: modules, and files that are no code; and keeps pytest from asking for modules that are hidden."""

import os
import sys

_MOST = 100
_CODE = (".py", ".pyc", ".pyi", ".pyd", ".so")
_getframe = sys._getframe


class ImportWatcher:
    """Watches imports of these top-level modules, and of all below them.

    A finder in front of all others that finds nothing. An audit hook would not see ``importlib.import_module``.
    """

    def __init__(self, names):
        self.names = frozenset(names)
        self.seen = []
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if self.owns(name):
            asked = _who_asked()
            self.note(name, *_place_of(asked), **self._on_behalf_of(asked))
        return None

    def owns(self, name):
        """Whether a dotted name, perhaps with ``:attribute``, begins with a watched module."""
        return name.partition(":")[0].partition(".")[0].strip() in self.names

    def note(self, module, file, line, **more):
        if len(self.seen) < _MOST:
            self.seen.append({"module": module, "file": file, "line": line, **more})

    def _on_behalf_of(self, frame):
        """The watched module, conftests aside, whose code had the asking code run: it can do so, or not, by itself."""
        frame = frame and frame.f_back
        while frame is not None:
            name = frame.f_globals.get("__name__")
            if type(name) is str and self.owns(name) and name.rpartition(".")[2] != "conftest":
                return {"for": name}
            frame = frame.f_back
        return {}

    def taken(self):
        """What was seen since this was last asked."""
        seen, self.seen = self.seen, []
        return seen

    def hide_from(self, manager):
        """Have pytest do without plugins and warning categories that are in watched modules; notes those it was to load."""
        import importlib.metadata  # not for commands, which get what they import from their own path

        imported = manager.import_plugin
        config = manager.get_plugin("pytestconfig")
        configured = config.getini

        def import_plugin(name, *arguments, **options):
            if self.owns(name):
                self.note(name, "pytest: -p", 0)
                return None
            return imported(name, *arguments, **options)

        def getini(name):
            value = configured(name)
            if name == "filterwarnings":
                # The same list: others add to it.
                value[:] = self._without_hidden(value)
            return value

        manager.import_plugin = import_plugin
        config.getini = getini
        for distribution in importlib.metadata.distributions():
            for point in distribution.entry_points:
                if point.group == "pytest11" and self.owns(point.value):
                    self.note(point.value, "pytest: entry point", 0)
                    manager.set_blocked(point.name)

    def _without_hidden(self, filters):
        kept = []
        for text in filters:
            parts = text.split(":")
            if len(parts) > 2 and "." in parts[2] and self.owns(parts[2]):
                seen = {"module": parts[2].strip(), "file": "pytest: filterwarnings", "line": 0}
                if seen not in self.seen:
                    self.note(**seen)
            else:
                kept.append(text)
        return kept


def _who_asked():
    """The first frame outside the import system, or None."""
    frame = _getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen importlib") and not file.endswith(("/importlib/__init__.py", "/importlib/_bootstrap.py")):
            return frame
        frame = frame.f_back
    return None


def _place_of(frame):
    """File and line."""
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno or 0)


class FileWatcher:
    """Notes files of a tree that Python opens, code aside. It cannot be taken away again."""

    def __init__(self, root):
        self.root = root.rstrip("/") + "/"
        self.seen = {}
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if event == "open" and len(self.seen) < _MOST:
            try:
                self._note(arguments[0])
            except Exception:
                # Whatever the test opened there: its own open tells it.
                pass

    def _note(self, path):
        if path is None or isinstance(path, int):
            return
        path = os.fsdecode(path)
        if path.endswith(_CODE) or "__pycache__" in path:
            return
        path = os.path.normpath(os.path.join(os.getcwd(), path))
        if path.startswith(self.root):
            self.seen.setdefault(path[len(self.root) :].encode("utf-8", "backslashreplace").decode("utf-8"))

    def taken(self):
        """What was seen since this was last asked."""
        seen, self.seen = list(self.seen), {}
        return seen
