"""Starts the tracer in a child interpreter of a traced group; see `gistmill_runner.followed`.

Python imports this before the program. It takes itself out of the way first: out of the environment, out of the module
search path, and in front of the ``sitecustomize`` that it hid.
"""

import os
import sys


def _step_aside():
    """Undo what made Python come here. Returns the setting that the parent left, or None."""
    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != here]
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [path for path in sys.path if path != here]
    sys.path_importer_cache.pop(here, None)
    own = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)
    return os.environ.pop("GISTMILL_FOLLOW", None)


def _follow():
    setting = _step_aside()
    if setting is None:
        return
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, package)
    try:
        from gistmill_runner import followed
    finally:
        sys.path.remove(package)
    followed.enter(setting)


_follow()
