"""Which files of the tree a command makes, changes and deletes. Of the standard library alone: a cold run is looked at by
this file as a program.

    python -I -S tree_state.py before ROOT FILE
    python -I -S tree_state.py after ROOT FILE      prints the changes since
"""

import hashlib
import json
import os
import stat
import sys

_MOST_FILES = 1_000_000
_MOST_CHANGES = 1000
_LONGEST_TEXT = 64 << 10
_LARGEST = 64 << 20
_APART = ("__pycache__", ".git")


def state(root):
    """What each path below the root looks like: kind, execution bit, size, time; where a link leads."""
    found, folders = {}, [""]
    while folders and len(found) < _MOST_FILES:
        folder = folders.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except OSError:
            continue
        for entry in entries:
            if entry.name in _APART or entry.name.endswith(".pyc"):
                continue
            path = os.path.join(folder, entry.name)
            try:
                look = entry.stat(follow_symlinks=False)
                found[path] = _look(os.path.join(root, path), look)
            except OSError:
                continue
            if stat.S_ISDIR(look.st_mode):
                folders.append(path)
    return found


def _look(path, look):
    if stat.S_ISDIR(look.st_mode):
        return ["folder"]
    if stat.S_ISLNK(look.st_mode):
        return ["link", os.readlink(path)]
    if not stat.S_ISREG(look.st_mode):
        return ["other", stat.S_IFMT(look.st_mode)]
    return ["file", bool(look.st_mode & 0o100), look.st_size, look.st_mtime_ns]


def changes(root, before, ignored=None):
    """What differs from `before`, by path."""
    after, changed = state(root), []
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path), after.get(path)
        if was == now or path == ignored:
            continue
        change = "deleted" if now is None else "created" if was is None else "changed"
        one = {"path": _printable(path), "change": change, "kind": (now or was)[0]}
        if now is not None and now[0] == "file":
            one["executable"] = now[1]
            one.update(_content(os.path.join(root, path)))
        elif now is not None and now[0] == "link":
            one["text"] = _printable(now[1])
        changed.append(one)
        if len(changed) == _MOST_CHANGES:
            break
    return changed


def _content(path):
    """The text of a file; the hash of one that is long, or not text."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    with open(descriptor, "rb") as file:
        content = file.read(_LARGEST)
    if len(content) <= _LONGEST_TEXT and b"\0" not in content:
        try:
            return {"text": content.decode("utf-8")}
        except UnicodeDecodeError:
            pass
    return {"sha256": hashlib.sha256(content).hexdigest()}


def _printable(text):
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def main(arguments):
    when, root, file = arguments
    if when == "before":
        with open(file, "w") as written:
            json.dump(state(root), written)
        return
    with open(file) as written:
        before = json.load(written)
    json.dump(changes(root, before), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
