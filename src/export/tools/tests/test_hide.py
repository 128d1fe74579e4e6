"""What an image of a task does not show."""

import importlib.util
import json
import py_compile
import subprocess
import tarfile
import zipfile
from pathlib import Path

PLACE = Path(__file__).parents[2] / "masked" / "hide.py"
SPEC = importlib.util.spec_from_file_location("hide", PLACE)
hide = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(hide)

BODY = "def {0}(a):\n    '''Doc.'''\n    b = a + {1}\n    c = b * 2\n    return c\n\n\n"
ORIGINAL = "import os\n\n\n" + "".join(BODY.format(name, at) for at, name in enumerate(("first", "second", "third")))
MASK = "".join(f"def {name}(a):\n    '''Doc.'''\n    raise NotImplementedError()\n\n\n" for name in ("first", "second", "third"))
SECRET = "a + 1"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def git(tree, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", "-C", str(tree), *who, *words], check=True, capture_output=True, text=True).stdout


def image(root):
    """A made-up image, and what the mask of its file is made of."""
    tree = root / "testbed"
    write(tree / "pkg/core.py", ORIGINAL)
    write(tree / "pkg/other.py", "from .core import first\n")
    write(tree / "pkg/core.cpython-312-x86_64-linux-gnu.so", SECRET)
    write(tree / "build/lib/pkg/core.py", ORIGINAL)
    write(tree / "tests/test_core.py", "def test(): pass\n")
    py_compile.compile(str(tree / "pkg/core.py"), cfile=str(tree / "pkg/__pycache__/core.cpython-312.pyc"))
    git(tree, "init", "-q")
    git(tree, "add", "-A", "-f")
    git(tree, "commit", "-q", "-m", "whole")
    site = root / "opt/venv/lib/python3.12/site-packages"
    indented = "".join(f"  {line}\n" if line else "\n" for line in ORIGINAL.split("\n"))
    write(site / "vendored/core.py", f"class Vendored:\n{indented}")
    write(site / "other/core.py", "def first():\n    return 1\n\ndef second():\n    return 2\n")
    write(root / "usr/lib/python3/site-packages/pip/_vendor/core.py", ORIGINAL)
    write(root / "usr/lib/python3/site-packages/pip/__init__.py", "")
    with zipfile.ZipFile(root / "usr/lib/bundled.whl", "w") as packed:
        packed.writestr("pkg/core.py", ORIGINAL)
    with zipfile.ZipFile(root / "usr/lib/harmless.whl", "w") as packed:
        packed.writestr("pkg/core.py", MASK)
    with tarfile.open(root / "usr/lib/sdist.tar.gz", "w:gz") as packed:
        packed.add(tree / "pkg/core.py", "pkg-1/pkg/core.py")
    write(root / "usr/lib/broken.zip", "no archive")
    folder = root / "tmp/mask"
    write(folder / "put/pkg/core.py", MASK)
    write(folder / "mask.json", json.dumps({"workdir": "/testbed", "put": ["pkg/core.py"], "hide": ["tests/test_core.py", "gone.py"]}))
    return tree, site, folder


def test_nothing_of_the_original_is_left(tmp_path, capsys):
    tree, site, folder = image(tmp_path)
    hide.main(str(folder), str(tmp_path))
    assert (tree / "pkg/core.py").read_text() == MASK
    for gone in ("tests/test_core.py", "pkg/__pycache__", "pkg/core.cpython-312-x86_64-linux-gnu.so", "build/lib/pkg/core.py"):
        assert not (tree / gone).exists(), gone
    assert not (site / "vendored/core.py").exists()
    assert (site / "other/core.py").exists() and (tmp_path / "usr/lib/harmless.whl").exists() and (tmp_path / "usr/lib/broken.zip").exists()
    assert not (tmp_path / "usr/lib/python3/site-packages/pip").exists()
    assert not (tmp_path / "usr/lib/bundled.whl").exists() and not (tmp_path / "usr/lib/sdist.tar.gz").exists()
    assert "vendored/core.py" in capsys.readouterr().out
    for place in tmp_path.rglob("*"):
        assert not place.is_file() or SECRET.encode() not in place.read_bytes(), place


def test_another_release_of_a_module_goes_even_if_its_bodies_are_short_and_other_ones(tmp_path):
    tree, site, folder = image(tmp_path)
    short = "def hook(a):\n    return a or {}\n\ndef send(a):\n    return hook(a)\n"
    write(tree / "pkg/core.py", short)
    other = short.replace("return a or {}", "return dict(a)")
    write(tmp_path / "usr/lib/python3/site-packages/pip/_vendor/core.py", "")
    pip = write(tmp_path / "usr/lib/python3/site-packages/pip/_vendor/pkg/core.py", other)
    away = write(site / "elsewhere/core.py", other)
    standard = write(tmp_path / "usr/lib/python3.12/pkg/core.py", other)
    stubs = write(site / "stubs/pkg/core.py", "def hook(a): ...\ndef send(a): ...\n")
    hide.main(str(folder), str(tmp_path))
    assert not pip.exists() and not (tmp_path / "usr/lib/python3/site-packages/pip").exists()
    assert away.exists() and stubs.exists() and standard.exists()


def test_the_one_commit_is_of_what_is_left(tmp_path):
    tree, _, folder = image(tmp_path)
    hide.main(str(folder), str(tmp_path))
    assert git(tree, "rev-list", "--all", "--count").strip() == "1"
    assert git(tree, "ls-files").split() == ["pkg/core.py", "pkg/other.py"]
    assert git(tree, "status", "--porcelain") == ""
    assert SECRET not in git(tree, "log", "-p", "--all")
    objects = git(tree, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    blobs = [line.split()[0] for line in objects if line.split()[1] == "blob"]
    assert blobs and all(SECRET not in git(tree, "cat-file", "-p", blob) for blob in blobs)


def test_a_link_that_is_hidden_stays_and_leads_to_the_mask(tmp_path):
    tree, _, folder = image(tmp_path)
    (tree / "tests/link.py").symlink_to("../pkg/core.py")
    mask = json.loads((folder / "mask.json").read_text())
    (folder / "mask.json").write_text(json.dumps({**mask, "hide": [*mask["hide"], "tests/link.py"]}))
    hide.main(str(folder), str(tmp_path))
    assert (tree / "tests/link.py").read_text() == MASK
