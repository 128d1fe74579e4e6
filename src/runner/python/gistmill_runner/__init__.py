"""The Python side of gistmill: a tree of forks that runs test groups as ``python -m pytest <group>`` would.

Only `stages` imports pytest, once it is known to be importable. Everything that a test could replace for good and that
the runner needs afterwards is bound by name when these modules are imported.
"""
