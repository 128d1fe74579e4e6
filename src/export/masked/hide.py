"""Makes the tree of an image what an agent may see, while the image is built.

usage: hide.py FOLDER [ROOT]

FOLDER has mask.json: `workdir`, `put` (files that take the place of others, which are in FOLDER/put) and `hide` (files that go).
Besides go: byte code, compiled modules and history of the tree; and wherever else in the image the original of a file that was
replaced can be read: copies (a fifth of its bodies of three statements and more, and two of them or all; of a file with the same name
in a folder with the same name, a fifth of its functions, whatever they do), archives with copies, byte code. Of pip, which carries some packages
whole, all goes where it has a copy. The tree has one commit then, of all that is left. ROOT stands for `/`.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

LEAST_STATEMENTS = 3
LARGEST = 4 << 20
ARCHIVES = (".whl", ".zip", ".egg", ".pyz", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# The standard library is nobody's release of a target, and Python needs it.
STANDARD = re.compile(r"/lib/(?:python3[^/]*|pypy3[^/]*)/(?!(?:site|dist)-packages/)")
# Folders that say nothing of whose file it is.
PLAIN = ("src", "lib", "python", "tests", "test", "utils", "core")
COMPILED = (".so", ".pyd", ".c", ".cpp")
APART = ("proc", "sys", "dev")
DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.M)


def functions(body):
    """Functions that are not inside another one."""
    for one in body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield one
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from functions(getattr(one, field, []))
        for part in [*getattr(one, "handlers", []), *getattr(one, "cases", [])]:
            yield from functions(part.body)


def bodies(data):
    """Bodies of three statements and more, docstrings aside, as trees; the names of their functions, and of all that do something."""
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(), set(), set()
    found, names, written = set(), set(), set()
    for one in functions(module.body):
        body = one.body
        first = getattr(body[0], "value", None) if isinstance(body[0], ast.Expr) else None
        if isinstance(getattr(first, "value", None), str):
            body = body[1:]
        if len(body) >= LEAST_STATEMENTS:
            found.add("\n".join(map(ast.dump, body)))
            names.add(one.name.encode())
        if not all(isinstance(part, (ast.Raise, ast.Pass)) or getattr(getattr(part, "value", None), "value", None) is ... for part in body):
            written.add(one.name)
    return found, names, written


def enough(common, whole):
    return common > 0 and 5 * common >= whole and (common >= 2 or common == whole)


class Original:
    def __init__(self, path, data):
        self.path, self.data = path, data
        self.bodies, self.names, self.written = bodies(data)
        self.stem = os.path.basename(path)[: -len(".py")]
        above = path.split("/")[-2:]
        self.end = "/" + "/".join(above) if len(above) == 2 and above[0] not in PLAIN else None

    def is_in(self, data, place):
        if data == self.data:
            return True
        if self.end and ("/" + place).endswith(self.end) and not STANDARD.search(place):
            # Another release of the same module, whose bodies may all be short.
            common = len(self.written & bodies(data)[2])
            if common and 5 * common >= len(self.written):
                return True
        names = self.names.intersection(DEFINED.findall(data))
        # For most files the names are enough.
        return enough(len(names), len(self.names)) and enough(len(self.bodies & bodies(data)[0]), len(self.bodies))


def members(place):
    """Python files of an archive; nothing of what is not one."""
    try:
        if zipfile.is_zipfile(place):
            with zipfile.ZipFile(place) as opened:
                for one in opened.infolist():
                    if one.filename.endswith(".py") and one.file_size <= LARGEST:
                        yield opened.read(one), one.filename
        else:
            with tarfile.open(place) as opened:
                for one in opened:
                    if one.isfile() and one.name.endswith(".py") and one.size <= LARGEST:
                        yield opened.extractfile(one).read(), one.name
    except Exception as error:
        # Each library that unpacks has errors of its own.
        print(f"cannot be unpacked: {place}: {error}")


def shows(place, name, originals):
    """Whether an original can be read in a file."""
    try:
        if name.endswith(ARCHIVES):
            return any(one.is_in(data, inside) for data, inside in members(place) for one in originals)
        if os.path.getsize(place) > LARGEST or not name.endswith((".py", ".pyi", ".pyc", ".txt", ".orig", ".bak")):
            return False
        with open(place, "rb") as opened:
            data = opened.read()
    except OSError:
        return False
    if name.endswith(".pyc"):
        # It has the path of what it was made of.
        return any(one.path.encode() in data for one in originals)
    return any(one.is_in(data, place) for one in originals)


def remove(place):
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)


def clean_tree(tree, originals):
    """Takes out what was made of the originals, whatever it shows."""
    for folder, folders, names in os.walk(tree):
        for name in [one for one in folders if one in (".git", "__pycache__")]:
            remove(os.path.join(folder, name))
            folders.remove(name)
        for name in names:
            beside = any(folder == os.path.join(tree, os.path.dirname(one.path)).rstrip("/") and name.startswith(one.stem + ".") for one in originals)
            if name == ".git" or name.endswith(".pyc") or (beside and name.endswith(COMPILED)):
                remove(os.path.join(folder, name))


def search(root, put, originals):
    """Takes copies out of the whole image, and says which."""
    kept = {os.path.realpath(place) for place in put}
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [one for one in folders if one not in APART]
        for name in names:
            place = os.path.join(folder, name)
            if os.path.islink(place) or not os.path.isfile(place) or os.path.realpath(place) in kept:
                continue
            if shows(place, name, originals):
                above, pip, _ = place.partition("/site-packages/pip/")
                place = above + pip.rstrip("/") if pip else place
                remove(place)
                print(f"taken out: {place}")
                compiled = os.path.join(folder, "__pycache__")
                for one in os.listdir(compiled) if name.endswith(".py") and os.path.isdir(compiled) else ():
                    if one.startswith(name[: -len("py")]) and one.endswith(".pyc"):
                        remove(os.path.join(compiled, one))


def commit(tree):
    """One commit of all that is left."""

    def git(*words):
        who = ["-c", "user.name=tree", "-c", "user.email=tree@localhost", "-c", "core.autocrlf=false"]
        subprocess.run(["git", "-C", tree, *who, *words], check=True, stdout=subprocess.DEVNULL)

    os.environ.update(GIT_AUTHOR_DATE="2000-01-01T00:00:00Z", GIT_COMMITTER_DATE="2000-01-01T00:00:00Z")
    git("init", "-q", "-b", "main")
    git("add", "-A", "-f")
    git("commit", "-q", "-m", "Masked tree")


def main(folder, root="/"):
    with open(os.path.join(folder, "mask.json"), encoding="utf-8") as opened:
        mask = json.load(opened)
    tree = os.path.join(root, mask["workdir"].lstrip("/"))
    owner = os.stat(tree)
    originals = []
    for path in mask["put"]:
        place = os.path.join(tree, path)
        with open(place, "rb") as opened:
            originals.append(Original(path, opened.read()))
        shutil.copyfile(os.path.join(folder, "put", path), place)
    for path in mask["hide"]:
        place = os.path.join(tree, path)
        # A link shows nothing of its own.
        if os.path.isfile(place) and not os.path.islink(place):
            os.unlink(place)
    clean_tree(tree, originals)
    search(root, [os.path.join(tree, path) for path in mask["put"]] + [os.path.join(folder, "put", path) for path in mask["put"]], originals)
    commit(tree)
    if os.geteuid() == 0:
        for above, folders, names in os.walk(tree):
            for name in [".", *folders, *names]:
                os.chown(os.path.join(above, name), owner.st_uid, owner.st_gid, follow_symlinks=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
