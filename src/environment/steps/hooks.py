"""Calls the build hooks of a source tree (PEP 517 and 660), inside the sandbox, offline.

    hooks.py declares SPEC OUT     the texts of a source distribution that say how it is built
    hooks.py requires SPEC OUT     what building asks for beyond [build-system].requires
    hooks.py build SPEC OUT        a wheel in OUT

SPEC is a JSON file with `root`, `backend`, `backend_path`, `source_root`, `editable`, and `archive`: a source distribution that is
unpacked into `root` first. The answer is OUT/answer.json. Standard library only; works on CPython 3.8 and newer. Everything that the
hooks print goes to stderr.
"""

import base64
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile


def main():
    action, spec_path, out = sys.argv[1:4]
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    # The folder of this script is no part of what a hook may import.
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    sys.argv = ["setup.py"]
    if spec["archive"]:
        unpack(spec["archive"], spec["root"])
    os.chdir(spec["root"])
    os.dup2(2, 1)
    answer = {"declares": declares, "requires": requires, "build": build}[action](spec, out)
    with open(os.path.join(out, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)


def unpack(archive, root):
    """Unpack a source distribution without its top folder."""
    scratch = os.path.join(root, ".unpacked")
    if archive.endswith(".zip"):
        with zipfile.ZipFile(archive) as file:
            file.extractall(scratch)
    else:
        with tarfile.open(archive) as file:
            if hasattr(tarfile, "data_filter"):
                file.extractall(scratch, filter="data")
            else:
                file.extractall(scratch)
    names = os.listdir(scratch)
    top = os.path.join(scratch, names[0]) if len(names) == 1 else scratch
    for name in os.listdir(top):
        os.rename(os.path.join(top, name), os.path.join(root, name))
    shutil.rmtree(scratch)


def declares(spec, out):
    answer = {"pyproject": None, "cargo": cargo_texts()}
    if os.path.isfile("pyproject.toml"):
        with open("pyproject.toml", encoding="utf-8-sig") as file:
            answer["pyproject"] = file.read()
    return answer


def cargo_texts():
    """What says which crates it needs, and from where it is compiled, by path."""
    texts, left = {}, 8 << 20
    for folder, folders, names in os.walk("."):
        folders.sort()
        for name in ("Cargo.lock", "Cargo.toml", "pyproject.toml", "setup.py"):
            path = os.path.normpath(os.path.join(folder, name))
            is_top = folder == "."
            if name not in names or os.path.islink(path) or not (is_top or name.startswith("Cargo.")):
                continue
            with open(path, encoding="utf-8-sig", errors="replace") as file:
                text = file.read(left + 1)
            left -= len(text)
            if left < 0 or len(texts) == 1000:
                return texts
            texts[path] = text
    return texts


def load_backend(spec):
    """The backend object; `backend-path` comes first and must lie in the tree (PEP 517)."""
    root = os.path.realpath(spec["root"])
    for path in reversed(spec["backend_path"]):
        full = os.path.realpath(os.path.join(root, path))
        if full != root and not full.startswith(root + os.sep):
            raise SystemExit("backend-path leaves the tree")
        sys.path.insert(0, full)
    module, _, attributes = spec["backend"].partition(":")
    backend = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        if attribute == "__legacy__" and not hasattr(backend, attribute):
            # Before setuptools 40.8 there was one backend: with the root on its path it is this one.
            sys.path.insert(0, root)
        else:
            backend = getattr(backend, attribute)
    return backend


def requires(spec, out):
    backend = load_backend(spec)
    editable = spec["editable"] and hasattr(backend, "build_editable")
    hook = getattr(backend, "get_requires_for_build_editable" if editable else "get_requires_for_build_wheel", None)
    return {"requires": list(hook({}) or []) if hook else []}


def build(spec, out):
    backend = load_backend(spec)
    if not spec["editable"]:
        return describe("wheel", out, backend.build_wheel(out, {}, None))
    if hasattr(backend, "build_editable"):
        wheel = backend.build_editable(out, {}, None)
        if spec["backend"] == "mesonpy":
            build_no_more(os.path.join(out, wheel))
        return describe("editable", out, wheel)
    metadata = metadata_of(backend, out)
    if spec["backend"].startswith("setuptools.") and os.path.exists("setup.py"):
        # What `setup.py develop` does for compiled modules; harmless where there are none.
        subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], check=True)
    return describe("path", out, path_wheel(metadata, spec, out))


def describe(method, out, wheel):
    """What the wheel says about itself."""
    if not stat.S_ISREG(os.lstat(os.path.join(out, wheel)).st_mode):
        raise SystemExit("the build backend left no file as its wheel")
    with zipfile.ZipFile(os.path.join(out, wheel)) as archive:
        names = [name for name in archive.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA")]
        metadata = archive.read(names[0])
    fields = header(metadata)
    extras = [value for name, value in fields if name == "Provides-Extra"]
    first = dict(reversed(fields))
    return {
        "method": method,
        "wheel": wheel,
        "name": first["Name"],
        "version": first["Version"],
        "extras": extras,
        "metadata": metadata.decode("utf-8", "replace"),
    }


def header(metadata):
    """Fields of a METADATA file, in order."""
    lines = metadata.decode("utf-8").replace("\r\n", "\n").split("\n\n")[0].splitlines()
    return [(name, value.strip()) for name, separator, value in (line.partition(": ") for line in lines) if separator]


def metadata_of(backend, out):
    """Texts of the dist-info folder, by file name."""
    scratch = os.path.join(out, "metadata")
    os.makedirs(scratch)
    try:
        if hasattr(backend, "prepare_metadata_for_build_wheel"):
            folder = os.path.join(scratch, backend.prepare_metadata_for_build_wheel(scratch, {}))
            names = [name for name in os.listdir(folder) if name in ("METADATA", "entry_points.txt")]
            texts = {}
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    texts[name] = file.read()
            return texts
        with zipfile.ZipFile(os.path.join(scratch, backend.build_wheel(scratch, {}, None))) as wheel:
            inside = {name.rsplit("/", 1)[-1]: name for name in wheel.namelist() if ".dist-info/" in name}
            return {name: wheel.read(inside[name]) for name in ("METADATA", "entry_points.txt") if name in inside}
    finally:
        shutil.rmtree(scratch)


def build_no_more(wheel):
    """Make an editable wheel of meson-python import what was built.

    At each import its loader calls ninja, which lies in the build environment and would compile files that another copy of
    the tree dates anew; and it reads the tree for where modules lie. Now it holds what it would read.
    """
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name in [name for name in files if name.endswith("_editable_loader.py")]:
        folders = [path.decode() for path in re.findall(rb"'(/[^'\n]+)'", files[name])]
        plans = [os.path.join(folder, "meson-info", "intro-install_plan.json") for folder in folders]
        with open(next(filter(os.path.isfile, plans)), encoding="utf-8") as file:
            plan = json.load(file)
        known = "\n_PLAN = %r\nMesonpyMetaFinder._rebuild = functools.lru_cache(1)(lambda self: collect(_PLAN))\n" % plan
        files[name] += known.encode()
    write_wheel(wheel, files)


def path_wheel(metadata, spec, out):
    """A wheel that holds the metadata and one .pth file that names the source root."""
    fields = dict(reversed(header(metadata["METADATA"])))
    name = fields["Name"].replace("-", "_").replace(".", "_")
    stem = "{}-{}".format(name, fields["Version"].replace("-", "_"))
    files = {name + ".pth": (spec["source_root"] + "\n").encode()}
    info = stem + ".dist-info/"
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: path\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files.update({info + inner: text for inner, text in metadata.items()})
    wheel = stem + "-py3-none-any.whl"
    write_wheel(os.path.join(out, wheel), files)
    return wheel


def write_wheel(path, files):
    """A wheel of these files, of which the RECORD is made anew."""
    info = next(name.split("/")[0] for name in files if name.endswith(".dist-info/METADATA"))
    files.pop(info + "/RECORD", None)
    record = io.StringIO()
    for inner, text in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record.write("{},sha256={},{}\n".format(inner, digest, len(text)))
    record.write(info + "/RECORD,,\n")
    files[info + "/RECORD"] = record.getvalue().encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inner, text in files.items():
            archive.writestr(zipfile.ZipInfo(inner, (1980, 1, 1, 0, 0, 0)), text)


main()
