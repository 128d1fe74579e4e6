"""Modules of the standard library that programs import, imported once for all attempts of commands."""

import importlib
import os
import sys

# What many programs import, what it takes long to import, and what looks the same however early that happens.
_NAMES = (
    "argparse ast asyncio base64 bz2 calendar configparser contextlib copy csv dataclasses datetime decimal difflib email.message "
    "email.parser email.policy fractions functools getpass glob gzip hashlib html html.parser http.client importlib.metadata "
    "importlib.resources inspect json logging lzma mimetypes optparse pathlib pickle platform pprint queue secrets shlex shutil "
    "signal socket sqlite3 ssl statistics string subprocess tarfile tempfile textwrap threading tokenize traceback typing "
    "urllib.parse urllib.request uuid xml.etree.ElementTree zipfile"
)
_UNUSED = {"test", "idlelib"}


def import_standard_library(root, entries):
    """Import them, unless the tree has a module in the place of any module of the standard library, where a command finds it
    first: then a command would get that."""
    standard = getattr(sys, "stdlib_module_names", None)
    if standard is None or not standard.isdisjoint(_names(_places(root, entries)) - _UNUSED):
        return
    for name in _NAMES.split():
        try:
            importlib.import_module(name)
        except Exception:
            pass  # an interpreter can be built without it


def _places(root, entries):
    """Folders of the tree in which commands look for modules."""
    below = [path for path in sys.path if os.path.abspath(path).startswith(root)]
    folders = {root, *below}
    for entry in entries:
        folder = os.path.join(root, entry.get("cwd") or "")
        folders.add(folder)
        if entry["command"]["kind"] == "script":
            folders.add(os.path.dirname(os.path.realpath(os.path.join(folder, entry["command"]["path"]))))
    return folders


def _names(folders):
    """Names that can be imported from folders."""
    names = set()
    for folder in folders:
        try:
            names.update(name.partition(".")[0] for name in os.listdir(folder))
        except OSError:
            continue
    return names
