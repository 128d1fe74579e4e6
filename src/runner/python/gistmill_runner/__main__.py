"""Start: ``python <dir>/gistmill_runner/__main__.py --in-fd A --out-fd B``, in the root of the tree."""

import os
import sys


def start():
    package = os.path.dirname(os.path.abspath(__file__))
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    path = list(sys.path)
    sys.path.insert(0, os.path.dirname(package))
    from gistmill_runner import interpreter

    sys.path[:] = path
    for entry in (package, os.path.dirname(package)):
        sys.path_importer_cache.pop(entry, None)
    return interpreter.main(sys.argv[1:])


start()
