"""What one attempt writes, no other sees; what the import wrote, all attempts of the file see."""

import subprocess
import sys
from pathlib import Path

import pytest

from driver import Driver, outcomes, write_tree

SANDBOX = Path(__file__).parent / "sandbox.py"

FILES = {
    "kept.txt": "pristine",
    "folder/inside.txt": "deep",
    "conftest.py": "import os\nfrom pathlib import Path\nPath('by_conftest.txt').write_text('conftest')\n",
    "test_a.py": """
import os
from pathlib import Path
import pytest
import shutil

HOME = Path(os.environ["PLACE"])
Path("by_import.txt").write_text("import")
(HOME / "at_import").mkdir()

def test_sees_what_the_import_wrote():
    assert Path("by_conftest.txt").read_text() == "conftest"
    assert Path("by_import.txt").read_text() == "import"
    assert (HOME / "at_import").is_dir()

def test_writes():
    assert sorted(os.listdir(".")) == sorted({"kept.txt", "folder", "conftest.py", "test_a.py", "test_b.py", "by_conftest.txt", "by_import.txt"})
    Path("kept.txt").write_text("spoilt")
    shutil.rmtree("folder")
    Path("new.txt").write_text("new")
    (HOME / "file").write_text("x")
    (HOME / "closed").mkdir(mode=0)
    os.symlink("/etc/passwd", HOME / "link")
    os.chmod(HOME, 0o500)
    os.rmdir(HOME / "at_import") if os.access(HOME, os.W_OK) else None

def test_finds_nothing():
    assert Path("kept.txt").read_text() == "pristine"
    assert Path("folder/inside.txt").read_text() == "deep"
    assert not Path("new.txt").exists()
    assert os.listdir(HOME) == ["at_import"]
    assert Path.cwd() == Path(os.environ["ROOT"])

def test_is_an_ordinary_user():
    status = Path("/proc/self/status").read_text()
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert name + ":\\t0000000000000000" in status
    assert "NoNewPrivs:\\t1" in status
    assert os.listdir(os.environ["SCRATCH"]) == []

def test_shows_its_mounts():
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    print([line.split('upperdir=')[1] for line in lines if 'upperdir=' in line and line.split()[4] in (os.environ["ROOT"], os.environ["PLACE"])])
""",
    "test_b.py": "import os\n\ndef test_other_file():\n    assert os.path.exists('by_conftest.txt')\n    assert not os.path.exists('by_import.txt')\n"
    "    assert os.listdir(os.environ['PLACE']) == []\n",
}


@pytest.fixture
def isolated(tmp_path):
    tree = write_tree(tmp_path / "tree", FILES)
    root, scratch, place = (tmp_path / name for name in ("root", "scratch", "place"))
    for directory in (root, scratch, place):
        directory.mkdir()
    prefix = [sys.executable, str(SANDBOX), str(root), str(tree), str(scratch)]
    if subprocess.run([*prefix, "true"]).returncode == 77:
        pytest.skip("this machine does not let us make a user namespace with overlays")
    driver = Driver(
        tree,
        prefix=prefix,
        isolation={"root": str(root), "writable": [str(place)], "scratch": str(scratch)},
        environment={"PLACE": str(place), "ROOT": str(root), "SCRATCH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    yield driver
    driver.stop()
    assert (tree / "kept.txt").read_text() == "pristine"
    assert list(place.iterdir()) == []


def test_attempts_do_not_see_each_other(isolated):
    ready = isolated.open("test_a.py", options=["-p", "no:cacheprovider"])
    assert ready["type"] == "file_ready", ready
    for function in ("sees_what_the_import_wrote", "writes", "finds_nothing", "writes", "finds_nothing", "is_an_ordinary_user"):
        done = isolated.run(ready, "test_" + function)
        assert outcomes(done) == ["passed"], done
    isolated.ask("close")
    ready = isolated.ask("open_file", file="test_b.py")
    assert outcomes(isolated.run(ready, "test_other_file")) == ["passed"]


def test_attempt_that_wrote_nothing_leaves_its_overlays_to_the_next(isolated):
    ready = isolated.open("test_a.py")

    def mounts():
        return isolated.run(ready, "test_shows_its_mounts")["cases"][0]["stdout"]

    before = mounts()
    assert mounts() == before
    isolated.run(ready, "test_writes")
    assert mounts() != before


def test_discovery_is_isolated_too(isolated):
    assert isolated.ask("discover", args=[], options=[])["type"] == "discovered"
    assert isolated.ask("discover", args=[], options=[])["type"] == "discovered"


def test_mount_that_fails_is_the_runners_own_trouble(tmp_path):
    driver = Driver.__new__(Driver)
    place = tmp_path / "missing"
    tree = write_tree(tmp_path / "tree", {"test_a.py": "def test_a(): pass\n"})
    settings = {"root": str(tree), "writable": [str(place)], "scratch": str(tmp_path / "scratch")}
    driver.__init__(tree, isolation=settings)
    assert driver.greeting["type"] == "internal_error"
    driver.stop()


def test_a_write_within_the_clock_tick_of_the_mount_is_seen(tmp_path):
    program = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from gistmill_runner.isolate import Layer\n"
        "layer = Layer('one', sys.argv[2], 0o755)\n"
        "layer.mounted(sys.argv[2])\n"
        "print(layer.untouched(sys.argv[2]))\n"
        "open(sys.argv[2] + '/one/upper/file', 'w').close()\n"
        "layer.mounted(sys.argv[2])  # the times as they were, as if no tick had passed\n"
        "print(layer.untouched(sys.argv[2]))\n"
    )
    package = SANDBOX.parent.parent
    shown = subprocess.run([sys.executable, "-c", program, str(package), str(tmp_path)], stdout=subprocess.PIPE, check=True).stdout
    assert shown.split() == [b"True", b"False"]
