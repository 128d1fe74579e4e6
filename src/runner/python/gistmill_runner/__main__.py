"""Start: ``python -I -S <dir>/gistmill_runner/__main__.py --in-fd A --out-fd B``, in the root of the tree.

That is the keeper, which starts the same again with ``--link C``: the interpreter.
"""

import os
import sys


def start():
    package = os.path.dirname(os.path.abspath(__file__))
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    path = list(sys.path)
    sys.path.insert(0, os.path.dirname(package))
    if sys.argv[1] == "--link":
        from gistmill_runner.interpreter import main
    else:
        from gistmill_runner.keeper import main
    sys.path[:] = path
    for entry in (package, os.path.dirname(package)):
        sys.path_importer_cache.pop(entry, None)
    return main(sys.argv[1:])


start()
