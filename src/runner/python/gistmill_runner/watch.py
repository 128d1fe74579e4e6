"""Notes who asks for modules that are not there, whether or not the failure is caught.

A finder in front of all others that finds nothing. An audit hook would not see ``importlib.import_module``.
"""

import sys

_MOST = 100
_getframe = sys._getframe


class ImportWatcher:
    """Watches imports of these top-level modules, and of all below them."""

    def __init__(self, names):
        self.names = frozenset(names)
        self.seen = []
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names and len(self.seen) < _MOST:
            file, line = _who_asked()
            self.seen.append({"module": name, "file": file, "line": line})
        return None

    def taken(self):
        """What was seen since this was last asked."""
        seen, self.seen = self.seen, []
        return seen


def _who_asked():
    """File and line of the first frame outside the import system."""
    frame = _getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen importlib") and not file.endswith(("/importlib/__init__.py", "/importlib/_bootstrap.py")):
            return file, frame.f_lineno or 0
        frame = frame.f_back
    return "", 0
