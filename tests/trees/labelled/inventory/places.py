"""Where things lie."""

import os
import pathlib
import tempfile


def root():
    """The checkout."""
    return pathlib.Path(__file__).parent.parent


def data(name):
    """A file of the package's data."""
    return pathlib.Path(__file__).parent / "data" / name


def relative(path):
    """A path as seen from the package."""
    return os.path.relpath(path, os.path.dirname(__file__))


def config_folder():
    return os.path.expanduser("~/.inventory")


def home_of(user):
    return os.path.expanduser("~" + user)


def scratch():
    """A folder for what is needed for a moment only."""
    return tempfile.gettempdir()
