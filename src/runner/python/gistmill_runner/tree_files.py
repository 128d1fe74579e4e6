"""The files of the tree by the names that code objects give them."""

import os
import sys

_realpath = os.path.realpath
_split, _join, _islink = os.path.split, os.path.join, os.path.islink


class TreeFiles(dict):
    """File names to paths relative to the root; None for what lies outside the tree or belongs to the environment."""

    def __init__(self, root):
        super().__init__()
        self.root = _realpath(root) + os.sep
        self.prefix = _realpath(sys.prefix) + os.sep
        self.folders = {}

    def __missing__(self, name):
        file = self[name] = None if name.startswith("<") else self.inside(self._resolved(name))
        return file

    def _resolved(self, name):
        """The path without links. A folder is looked up once: that takes a system call for each of its parts.

        What a relative name means changes with the working directory.
        """
        folder, last = _split(name)
        if not name.startswith("/") or last in ("", ".", "..") or _islink(name):
            return _realpath(name)
        if folder not in self.folders:
            self.folders[folder] = _realpath(folder)
        return _join(self.folders[folder], last)

    def inside(self, path):
        """An absolute path relative to the root, or None."""
        is_inside = path.startswith(self.root) and not path.startswith(self.prefix)
        return path[len(self.root) :] if is_inside else None
