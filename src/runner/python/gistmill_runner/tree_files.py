"""The files of the tree by the names that code objects give them."""

import os
import sys

_realpath = os.path.realpath


class TreeFiles(dict):
    """File names to paths relative to the root; None for what lies outside the tree or belongs to the environment."""

    def __init__(self, root):
        super().__init__()
        self.root = _realpath(root) + os.sep
        self.prefix = _realpath(sys.prefix) + os.sep

    def __missing__(self, name):
        file = self[name] = None if name.startswith("<") else self.inside(_realpath(name))
        return file

    def inside(self, path):
        """An absolute path relative to the root, or None."""
        is_inside = path.startswith(self.root) and not path.startswith(self.prefix)
        return path[len(self.root) :] if is_inside else None
