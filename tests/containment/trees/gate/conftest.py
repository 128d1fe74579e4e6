"""Imports what the tests use, so that this process has it as pinned; then changes everything on the disk that a later
process could read: source, byte code, the environment, the home, git's configuration, and the tests themselves.
"""

import importlib.util
import marshal
import os
import sys
import sysconfig

import pytest

import hashed
import lazy
import plain

POISON = "POISON OF THE CONFTEST"
ROOT = os.path.dirname(os.path.abspath(__file__))
SITE = sysconfig.get_path("purelib")


def write(path, text, mode="w"):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode) as file:
            file.write(text)
    except OSError:
        pass


def poisoned(source, flags):
    code = compile("def value():\n    return %r\n" % POISON, source, "exec")
    status = os.stat(source)
    check = int(status.st_mtime).to_bytes(4, "little") + (status.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    head = importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + (check if flags == 0 else b"12345678")
    write(importlib.util.cache_from_source(source), head + marshal.dumps(code), "wb")


def change_everything():
    write(ROOT + "/plain.py", "def value():\n    return %r\n" % POISON)
    write(ROOT + "/tests/test_added.py", "import plain\n\n\ndef test_added():\n    print(%r)\n    assert plain.value()\n" % POISON)
    write(ROOT + "/.git/config", "[core]\n\tfsmonitor = echo > @VICTIM@/run-by-git\n\thooksPath = h\n", "a")
    write(ROOT + "/.git/hooks/post-index-change", "#!/bin/sh\necho > @VICTIM@/run-by-git\n")
    poisoned(ROOT + "/hashed.py", 1)
    poisoned(ROOT + "/lazy.py", 0)
    write(SITE + "/sitecustomize.py", "import builtins\nbuiltins.POISON = %r\n" % POISON)
    write(SITE + "/poison.pth", "import builtins; builtins.POISON = %r\n" % POISON)
    write(SITE + "/iniconfig/__init__.py", "\nPOISON = %r\n" % POISON, "a")
    version = "python%d.%d" % sys.version_info[:2]
    home = os.path.expanduser("~/.local/lib/%s/site-packages" % version)
    write(home + "/usercustomize.py", "import builtins\nbuiltins.POISON = %r\n" % POISON)
    write(os.path.expanduser("~/.config/git/config"), "[core]\n\tfsmonitor = echo > @VICTIM@/run-by-git\n")
    for folder in ("/opt/gistmill", "/opt/uv", "/opt/work", "/opt/build", "/usr/lib/python3/dist-packages"):
        write(folder + "/sitecustomize.py", "import builtins\nbuiltins.POISON = %r\n" % POISON)
    write("/tmp/left", POISON)
    write("/dev/shm/left", POISON)


change_everything()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    change_everything()
