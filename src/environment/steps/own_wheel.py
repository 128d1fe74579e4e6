"""Looks a wheel over that a build made of the tree: what it brings may add to what is pinned, and takes the place of nothing.

    own_wheel.py SPEC OUT

SPEC is a JSON file with `wheel`, `root` (the tree), `source_root`, `build` (site-packages of what it was built with, of which texts are
read), `names` (what can be imported from the pinned tree, with `/` for each dot), `pinned` (its files and folders), `contents` (SHA-256
of its files) and `compiles` (whether Python is compiled). The answer is OUT/answer.json: `why` a wheel is not taken as it is, or null;
then OUT has another one, with its metadata and the source root. Nothing of the wheel is run. Works on CPython 3.8 and newer.
"""

import ast
import base64
import configparser
import glob
import hashlib
import io
import json
import os
import re
import sys
import zipfile

# What a wheel of the tree may come to, in bytes: its texts, and one of them.
MOST = 1 << 30
LARGEST_TEXT = 16 << 20
LOADED = ("conftest", "sitecustomize", "usercustomize")
# Finders of modules that a start-up file may install: what build backends write into editable wheels, by where they have its text.
TEMPLATES = ("mesonpy/_editable.py", "scikit_build_core/resources/_editable_redirect.py")
SETUPTOOLS = "setuptools/command/editable_wheel.py"
EDITABLES = "from editables.redirector import RedirectingFinder as F\nF.install()\n"
# What `hooks.py` adds to the finder of meson-python, which would build at each import.
MESON = "MesonpyMetaFinder._rebuild = functools.lru_cache(1)(lambda self: collect(_PLAN))"
MESON_INIT = "sys.meta_path.insert(0, finder)\nsys.path_hooks.insert(0, finder._path_hook)\n"
START = re.compile(r"import (\w+)(?:; ?\1\.(?:install|init)\(\))?;?")
ENDING = re.compile(r"(/__init__)?\.[\w.-]+$")
PROGRAMS = re.compile(r"(?:python|pypy|pytest|py\.test|activate)[\d.]*|sh|bash|env|git|cat|ls|which|uname|make|g?cc")


class Refused(Exception):
    """A wheel that is not taken as it is."""


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        spec = json.load(file)
    out, answer = sys.argv[2], {"why": None}
    with zipfile.ZipFile(spec["wheel"]) as archive:
        # Whatever cannot be read is not taken either.
        try:
            Wheel(archive, spec).look()
        except Exception as error:
            answer.update(path_wheel(archive, spec, out), why=str(error)[:300])
    with open(os.path.join(out, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


class Wheel:
    """What is in a wheel, by the place that it gets in site-packages."""

    def __init__(self, archive, spec):
        self.spec = spec
        self.names, self.pinned, self.contents = map(set, (spec["names"], spec["pinned"], spec["contents"]))
        self.archive, self.files, self.left = archive, {}, MOST
        for info in archive.infolist():
            if not info.is_dir():
                self.files[self.place(info.filename)] = info
        self.known = None
        self.project = re.sub(r"[-_.]+", "_", os.path.basename(spec["wheel"]).partition("-")[0]).lower()

    @staticmethod
    def place(name):
        """Where a file is installed, below site-packages."""
        parts = name.split("/")
        if not parts[0].endswith(".data"):
            return name
        kind, rest = parts[1] if len(parts) > 2 else "", parts[2:]
        if kind in ("purelib", "platlib"):
            return "/".join(rest)
        if kind == "scripts":
            check_program(rest[-1])
        elif kind == "data" and rest[0] not in ("etc", "share"):
            raise Refused("it puts %s into the environment" % "/".join(rest))
        elif kind not in ("data", "headers"):
            raise Refused("it has files of an unknown kind: %s" % kind)
        return name

    def read(self, name):
        info = self.files[name]
        self.left -= info.file_size
        if self.left < 0 or info.file_size > LARGEST_TEXT:
            raise Refused("%s is too large" % name)
        return self.archive.read(info)

    def look(self):
        finders = {name for name in self.files if name.endswith((".pth", ".start")) for name in self.started(name)}
        for name in self.files:
            if name.endswith("/entry_points.txt"):
                self.look_at_entry_points(name)
            elif name not in finders:
                self.look_at_module(name)

    def started(self, name):
        """Finders that a start-up file installs; its other lines must name folders of the tree."""
        if "/" in name:
            return
        if name.endswith(".start"):
            raise Refused("%s runs code at each start" % name)
        for line in self.read(name).decode().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            if not line.startswith(("import ", "import\t")):
                self.check_folder(line.rstrip())
                continue
            found = START.fullmatch(line.rstrip())
            finder = "%s.py" % (found and found[1])
            if finder not in self.files or found[1] in self.names:
                raise Refused("%s runs code at each start" % name)
            self.check_finder(finder)
            yield finder

    def check_folder(self, path):
        if not path.startswith("/") or self.inside(path) not in self.pinned:
            raise Refused("it puts %s on the path" % path)

    def inside(self, path):
        """A path below the tree as the pinned files are called; None for another one."""
        full, root = os.path.normpath(path), self.spec["root"]
        return "" if full == root else full[len(root) + 1 :] if full.startswith(root + "/") else None

    def look_at_module(self, name):
        stem, dot, ending = name.rpartition("/")[2].partition(".")
        kind = ending.rpartition(".")[2]
        if name.endswith(".dist-info/METADATA") or not dot or kind not in ("py", "pyc", "so"):
            return
        module = name[: len(name) - len(dot + ending)]
        module = module[: -len("/__init__")] if stem == "__init__" else module
        top = module.split("/")[0]
        if kind == "pyc" or module in self.names and not (kind == "so" and self.spec["compiles"]):
            if kind == "pyc" or hashlib.sha256(self.read(name)).hexdigest() not in self.contents:
                raise Refused("%s would be found before what is pinned" % name)
        compiled = (one for one in self.files if one.endswith(".so"))
        if top in LOADED or kind == "py" and top not in self.names and not any(one.startswith(top + "/") for one in compiled):
            raise Refused("%s is no part of what is pinned" % name)

    def look_at_entry_points(self, name):
        parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
        parser.optionxform = str
        parser.read_string(self.read(name).decode())
        own = {one.partition(".")[0].partition("/")[0] for one in self.files if one.endswith((".py", ".so"))}
        for group in parser.sections():
            for entry, target in parser.items(group):
                module = target.partition(":")[0].partition("[")[0].strip().replace(".", "/")
                is_program = group in ("console_scripts", "gui_scripts")
                if not is_program and module.partition("/")[0] in own and module not in self.names:
                    raise Refused("the entry point %s names %s, which is not pinned" % (entry, module))

    # Finders.

    def check_finder(self, name):
        """Of what a build backend writes, and of what it says as data: names of the tree for places of the tree."""
        self.known = self.known or known_statements(self.spec["build"])
        body = ast.parse(self.read(name)).body
        dumps = [ast.dump(statement) for statement in body]
        builds = any(isinstance(one, ast.ClassDef) and one.name == "MesonpyMetaFinder" for one in body)
        if builds and ast.dump(ast.parse(MESON).body[0]) not in dumps:
            raise Refused("%s builds at each import" % name)
        for statement, dumped in zip(body, dumps):
            if dumped not in self.known:
                self.check_data(name, statement)

    def check_data(self, name, statement):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = getattr(statement, "targets", None) or [statement.target]
            if all(isinstance(one, ast.Name) for one in targets):
                if isinstance(statement.value, ast.BinOp):
                    parts = statement.value.left, statement.value.right
                    return [ast.literal_eval(part) for part in parts]
                return self.check_value(ast.literal_eval(statement.value))
        if isinstance(statement, ast.FunctionDef) and ast.dump(statement.args) == ast.dump(ast.parse("lambda: 0").body[0].value.args):
            # As meson-python writes it since 0.22.
            first, rest = statement.body[0], statement.body[1:]
            is_finder = getattr(getattr(getattr(first, "value", None), "func", None), "id", None) == "MesonpyMetaFinder"
            known = [ast.dump(one) for one in ast.parse(MESON_INIT).body]
            if statement.name == "init" and not statement.decorator_list and is_finder and [ast.dump(one) for one in rest] == known:
                return [ast.literal_eval(one) for one in first.value.args]
        call = getattr(statement, "value", None)
        function = getattr(call, "func", None)
        is_install = getattr(function, "id", None) == "install"
        if is_install or getattr(getattr(function, "value", None), "id", None) == "F":
            values = [ast.literal_eval(one) for one in call.args + [one.value for one in call.keywords]]
            # The first switch of scikit-build-core's.
            if is_install and next((one for one in values if isinstance(one, bool)), False):
                raise Refused("%s builds at each import" % name)
            if not is_install and len(values) == 2:
                self.check_place(*values)
            return self.check_value(values)
        raise Refused("%s runs code at each start" % name)

    def check_value(self, value):
        if isinstance(value, dict):
            for key, one in value.items():
                target = one.get("destination") if isinstance(one, dict) else None
                if isinstance(target, str):
                    # A plan of meson: what is installed where.
                    self.check_place(re.sub(r"^\{\w+\}/", "", target), key)
                for place in one if isinstance(one, (list, tuple)) else (one,):
                    self.check_place(key, place)
                self.check_value(one)
        elif isinstance(value, (list, tuple, set)):
            for one in value:
                self.check_value(one)

    def check_place(self, name, path):
        """A module is found where the pinned tree or the wheel has it. What is built beside it is part of what is pinned."""
        if not isinstance(name, str) or not isinstance(path, str) or name.startswith("/"):
            return
        module = ENDING.sub("", name) if "/" in name else name.replace(".", "/")
        top, place = module.partition("/")[0], self.inside(path) or ""
        if not path.startswith("/"):
            is_file = path.endswith((".py", ".so")) and not path.startswith("{")
            is_right = not is_file or ENDING.sub("", path) == module
        elif place and (place in self.pinned or place + ".py" in self.pinned):
            is_right = True
        else:
            is_right = module not in self.names and (top in self.names or top == self.project)
        if not is_right:
            raise Refused("it has %s found at %s, which is not pinned" % (name, path))


def check_program(name):
    if PROGRAMS.fullmatch(name):
        raise Refused("it has a program of the name %s" % name)


def known_statements(site):
    """What the finders of build backends are made of."""
    texts = [EDITABLES, MESON]
    for path in TEMPLATES:
        texts += [open(one, encoding="utf-8").read() for one in glob.glob(os.path.join(site, path))]
    for path in glob.glob(os.path.join(site, SETUPTOOLS)):
        with open(path, encoding="utf-8") as file:
            for statement in ast.parse(file.read()).body:
                if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "_FINDER_TEMPLATE":
                    template = ast.literal_eval(statement.value)
                    texts.append(re.sub(r"\{\w+!r\}", "0", template).replace("{{", "{").replace("}}", "}"))
    return {ast.dump(statement) for text in texts for statement in ast.parse(text).body}


def entry_points(archive, spec, info):
    """Those of a wheel, where they name nothing that it had alone."""
    try:
        wheel = Wheel(archive, spec)
        [name] = [name for name in wheel.files if name.endswith("/entry_points.txt")]
        wheel.look_at_entry_points(name)
        return {info + "entry_points.txt": wheel.read(name)}
    except Exception:
        return {}


def path_wheel(archive, spec, out):
    """A wheel with the metadata of another one, and a start-up file that names the source root."""
    name = next(name for name in archive.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA"))
    metadata = archive.read(name)
    head = metadata.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n")[0].splitlines()
    fields = [line.partition(": ")[::2] for line in head]
    first = dict(reversed(fields))
    stem = "%s-%s" % (re.sub(r"[-_.]+", "_", first["Name"]), first["Version"].replace("-", "_"))
    info = stem + ".dist-info/"
    files = {
        first["Name"].replace("-", "_") + ".pth": (spec["source_root"] + "\n").encode(),
        info + "METADATA": metadata,
        info + "WHEEL": b"Wheel-Version: 1.0\nGenerator: path\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files.update(entry_points(archive, spec, info))
    record = io.StringIO()
    for inner, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record.write("%s,sha256=%s,%d\n" % (inner, digest, len(text)))
    record.write(info + "RECORD,,\n")
    files[info + "RECORD"] = record.getvalue().encode()
    wheel = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(out, wheel), "w", zipfile.ZIP_DEFLATED) as file:
        for inner, text in files.items():
            file.writestr(zipfile.ZipInfo(inner, (1980, 1, 1, 0, 0, 0)), text)
    return {
        "method": "path",
        "wheel": wheel,
        "name": first["Name"],
        "version": first["Version"],
        "extras": [value.strip() for key, value in fields if key == "Provides-Extra"],
        "metadata": metadata.decode("utf-8", "replace"),
    }


main()
