"""Calls the build hooks of a tree (PEP 517 and 660). Runs in the build environment, inside the sandbox, offline.

    hooks.py requires SPEC ANSWER     what building asks for beyond [build-system].requires
    hooks.py build SPEC ANSWER        an editable wheel below spec["out"]

SPEC is a JSON file with `backend`, `backend_path`, `root`, `source_root` and `out`; ANSWER is the JSON file to write.
Standard library only; works on CPython 3.8 and newer. Everything that the hooks print goes to stderr.
"""

import base64
import hashlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile


def main():
    action, spec_path, answer_path = sys.argv[1:4]
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    # The folder of this script is no part of what a hook may import.
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    sys.argv = ["setup.py"]
    os.chdir(spec["root"])
    os.dup2(2, 1)
    backend = load_backend(spec)
    answer = {"requires": requires, "build": build}[action](backend, spec)
    with open(answer_path, "w", encoding="utf-8") as file:
        json.dump(answer, file)


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
        backend = getattr(backend, attribute)
    return backend


def requires(backend, spec):
    name = "get_requires_for_build_editable"
    if not hasattr(backend, "build_editable"):
        name = "get_requires_for_build_wheel"
    hook = getattr(backend, name, None)
    return {"requires": list(hook({}) or []) if hook else []}


def build(backend, spec):
    out = spec["out"]
    if hasattr(backend, "build_editable"):
        return describe("editable", out, backend.build_editable(out, {}, None))
    metadata = metadata_of(backend, spec)
    if spec["backend"].startswith("setuptools.") and os.path.exists("setup.py"):
        # What `setup.py develop` does for compiled modules; harmless where there are none.
        subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], check=True)
    return describe("path", out, path_wheel(metadata, spec))


def describe(method, out, wheel):
    """What the wheel says about the tree."""
    with zipfile.ZipFile(os.path.join(out, wheel)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        fields = header(archive.read(names[0]))
    extras = [value for name, value in fields if name == "Provides-Extra"]
    first = dict(reversed(fields))
    return {"method": method, "wheel": wheel, "name": first["Name"], "version": first["Version"], "extras": extras}


def header(metadata):
    """Fields of a METADATA file, in order."""
    lines = metadata.decode("utf-8").replace("\r\n", "\n").split("\n\n")[0].splitlines()
    return [(name, value.strip()) for name, separator, value in (line.partition(": ") for line in lines) if separator]


def metadata_of(backend, spec):
    """Texts of the dist-info folder, by file name."""
    scratch = os.path.join(spec["out"], "metadata")
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


def path_wheel(metadata, spec):
    """A wheel that holds the metadata and one .pth file that names the source root."""
    fields = dict(reversed(header(metadata["METADATA"])))
    name = fields["Name"].replace("-", "_").replace(".", "_")
    stem = "{}-{}".format(name, fields["Version"].replace("-", "_"))
    files = {name + ".pth": (spec["source_root"] + "\n").encode()}
    info = stem + ".dist-info/"
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: path\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files.update({info + inner: text for inner, text in metadata.items()})
    record = io.StringIO()
    for inner, text in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record.write("{},sha256={},{}\n".format(inner, digest, len(text)))
    record.write(info + "RECORD,,\n")
    files[info + "RECORD"] = record.getvalue().encode()
    wheel = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(spec["out"], wheel), "w") as archive:
        for inner, text in files.items():
            archive.writestr(zipfile.ZipInfo(inner, (1980, 1, 1, 0, 0, 0)), text)
    return wheel


main()
