"""The inside of a container: what happens between its start and the run of a job.

The same steps as in the local sandbox: new namespaces as an ordinary user, a root of its own out of read-only pieces of the
image, the job's places, a locked inner namespace, no privileges, the command, and the end of everything once the command ends
or the driver goes away.

stdin: a JSON plan behind its length (4 bytes, big endian); chunks of a tar archive behind their lengths, the last one empty; from
then on it is the job's descriptor 3, or pieces of a service's connections (see `relay.py`). stdout: frames of a kind (1 byte), a length (4 bytes, big endian) and bytes:

    o  what the job prints to stdout
    c  what it writes to descriptor 4
    n  a piece of a connection to the driver's service
    f  a tar archive with what it left in the folders that the plan wants back
    e  the words of what could not be set up
    x  the last one: exit code in decimal, 128 + signal when it was killed

Runs on CPython 3.8 and newer; needs `tar`.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import select
import signal
import stat
import struct
import subprocess
import sys

USER_ID = 1000
SETUP_FAILED = 125
CHUNK = 1 << 16
# Every container has this folder, and what lies there matters to nobody.
BASE = "/dev/shm"
CHANNEL_IN, CHANNEL_OUT = 3, 4

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x4000, 1 << 18
MNT_DETACH = 2
NEW_NS, NEW_CGROUP, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID = (
    0x20000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x10000000,
    0x20000000,
)
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_SET_PDEATHSIG = 47, 2, 1
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
SYS_MOUNT_SETATTR = 442
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW = 1, 4
SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING = 1
# CAP_SYS_ADMIN to mount, CAP_DAC_OVERRIDE because overlayfs makes a work directory that nobody may enter.
FOR_MOUNTING = (21, 1)

libc = ctypes.CDLL(None, use_errno=True)


class Trouble(Exception):
    """A step that did not work, in words."""


def check(what, result):
    if result == -1:
        raise Trouble("%s: %s" % (what, os.strerror(ctypes.get_errno())))
    return result


def encode(text):
    return None if text is None else os.fsencode(text)


def mount(source, target, kind, flags, data=None):
    result = libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data))
    check("mounting %s" % target, result)


def pivot(new, old):
    check("pivot", libc.syscall(SYS_PIVOT_ROOT[platform.machine()], encode(new), encode(old)))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


# ---- the stream --------------------------------------------------------------------------------------------------------


def read_exactly(length):
    parts = []
    while length:
        part = os.read(0, min(length, CHUNK))
        if not part:
            raise Trouble("the driver went away")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def read_length():
    return struct.unpack(">I", read_exactly(4))[0]


def emit(kind, data=b""):
    data = memoryview(struct.pack(">cI", kind, len(data)) + data)
    while data:
        data = data[os.write(1, data) :]


def unpack(folder):
    """Write the archive that follows the plan below a folder."""
    tar = None
    # In memory: the disk may be full, and tar says so for each file.
    said = os.memfd_create("tar")
    while True:
        length = read_length()
        if not length:
            break
        if tar is None:
            os.makedirs(folder, exist_ok=True)
            tar = subprocess.Popen(["tar", "-x", "-p", "-f", "-", "-C", folder], stdin=subprocess.PIPE, stderr=said)
        data = read_exactly(length)
        try:
            tar.stdin.write(data)
        except BrokenPipeError:
            break
    if tar is not None:
        try:
            tar.stdin.close()
        except BrokenPipeError:
            pass
        if tar.wait() != 0:
            words = os.pread(said, 2000, 0).decode("utf-8", "replace").strip()
            raise Trouble("tar cannot unpack what the driver sent: " + words)
    os.close(said)


# Bytes of holes that are sent: an archive holds them as zeros, which cost the job nothing and everybody else their time.
MOST_HOLES = 1 << 30


def holes(path, size):
    """Bytes of a file that nobody has written, as far as that is more than may be sent."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = place = 0
        while place < size and found <= MOST_HOLES:
            try:
                data = os.lseek(descriptor, place, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                data = size
            found += data - place
            place = os.lseek(descriptor, data, os.SEEK_HOLE) if data < size else size
        return found
    finally:
        os.close(descriptor)


def measure(names, most):
    """Refuse what is larger than may be sent; the holes of a file count."""
    total, unwritten, waiting, linked = 0, 0, list(names), set()
    while waiting:
        path = waiting.pop()
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            waiting.extend(path + "/" + name for name in os.listdir(path))
        elif stat.S_ISREG(status.st_mode) and status.st_ino not in linked:
            total += status.st_size
            if status.st_blocks * 512 < status.st_size:
                unwritten += holes(path, status.st_size)
            if status.st_nlink > 1:
                linked.add(status.st_ino)
        if total > most:
            raise Trouble("the job left more than %d GiB" % (most >> 30))
        if unwritten > MOST_HOLES:
            raise Trouble("the job left holes of more than %d GiB in its files" % (MOST_HOLES >> 30))


def send_back(folder, names, most):
    """Send what lies in the folder of an open descriptor as an archive."""
    os.fchdir(folder)
    try:
        measure(names, most)
    except OSError as error:
        raise Trouble("what the job left cannot be measured: %s" % error)
    tar = subprocess.Popen(["tar", "-c", "-f", "-"] + names, stdout=subprocess.PIPE)
    while True:
        data = tar.stdout.read(CHUNK)
        if not data:
            break
        emit(b"f", data)
    if tar.wait() != 0:
        raise Trouble("tar cannot pack what the job left")


# ---- the root ----------------------------------------------------------------------------------------------------------

# What is made anew, beside what the places of the job show; children of the others are shown one by one.
MADE = ("proc", "sys", "dev", "tmp", "run", "home", "root", "boot", "lost+found", "mnt", "media", ".dockerenv", "testbed")
SPREAD = ("etc", "var", "opt", "srv")
# `shown.rs` puts MASKED, SHOWN_OF_SYS, DEVICES, LIBRARIES, PACKAGES and WHEELS before this program.
NOT_SHOWN = {"var": ("tmp", "run", "lock", "log"), "opt": ("venv",)}


class MountAttributes(ctypes.Structure):
    _fields_ = [("set", ctypes.c_uint64), ("clear", ctypes.c_uint64), ("propagation", ctypes.c_uint64), ("user", ctypes.c_uint64)]


def make_read_only(path):
    attributes = MountAttributes(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    result = libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, encode(path), AT_RECURSIVE, ctypes.byref(attributes), ctypes.c_size_t(size))
    check("making %s read-only" % path, result)


def bind(source, target, read_only=True):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write(target, "")
    mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        make_read_only(target)


def plain(top, path):
    """The path below a folder, none of whose parts may be a link: foreign code may have written there."""
    joined = top
    for part in path.split("/"):
        if part in ("", "."):
            continue
        joined += "/" + part
        if part == ".." or os.path.islink(joined):
            raise Trouble("%s: a symbolic link, and none is followed to what is mounted" % path)
    return joined


def show(source, target):
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source) or os.path.isfile(source):
        bind(source, target)


def build_root(plan, payload):
    """From the image's root to one of the job's own. `payload` is a folder of the new base, or of the old root."""
    os.chdir(BASE)
    os.mkdir("old")
    os.mkdir("new")
    pivot(".", "old")
    os.chdir("/")
    mount("tmpfs", "/new", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for name in sorted(os.listdir("/old")):
        if name in SPREAD:
            os.mkdir("/new/" + name)
            for child in sorted(os.listdir("/old/" + name)):
                if child not in NOT_SHOWN.get(name, ()) and not (name == "etc" and child in etc_files(plan)):
                    show("/old/%s/%s" % (name, child), "/new/%s/%s" % (name, child))
        elif name not in MADE:
            show("/old/" + name, "/new/" + name)
    for name in ("tmp", "run/lock", "var/tmp", "var/lib", "home", "etc", "proc"):
        os.makedirs("/new/" + name, exist_ok=True)
    for name, text in etc_files(plan).items():
        write("/new/etc/" + name, text)
    fill_dev()
    show_sys()
    if plan["own_processes"]:
        mount("proc", "/new/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    else:
        mount("/old/proc", "/new/proc", None, MS_BIND | MS_REC)
    for number, entry in enumerate(plan["mounts"]):
        apply(entry, number, payload)
    os.chdir("/new")
    pivot(".", ".")
    check("detaching the old root", libc.umount2(b".", MNT_DETACH))
    os.chdir("/")
    mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def etc_files(plan):
    user, home = plan["env"].get("USER", ""), plan["env"].get("HOME", "")
    plain = lambda text: text and ":" not in text and "\n" not in text
    user = user if plain(user) else plan["user"]
    home = home if plain(home) else "/home/" + user
    files = {
        "passwd": "root:x:0:0:root:/root:/bin/sh\n%s:x:%d:%d:%s:%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
        % (user, USER_ID, USER_ID, user, home),
        "group": "root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n" % (user, USER_ID),
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "machine-id": "0" * 32 + "\n",
        "hostname": plan["user"] + "\n",
    }
    files["hosts"] = "127.0.0.1 localhost %s\n::1 localhost\n" % plan["user"]
    files["resolv.conf"] = ""
    return files


def fill_dev():
    os.mkdir("/new/dev")
    for name in DEVICES:
        if os.path.exists("/old/dev/" + name):
            bind("/old/dev/" + name, "/new/dev/" + name, False)
    links = (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx"))
    for name, target in links:
        os.symlink(target, "/new/dev/" + name)
    os.mkdir("/new/dev/pts")
    os.mkdir("/new/dev/shm")
    mount("devpts", "/new/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")


# Folders with the interpreters of a prefix; beside their standard libraries what was installed, and the wheels that make a new
# environment; the same wheels, where a distribution keeps them for all.



def folders_of_packages(prefix):
    """Folders below a prefix with packages for its interpreters; links are passed over."""
    found = ["%s/%s" % (prefix, name) for name in WHEELS]
    for library in ("%s/%s" % (prefix, name) for name in LIBRARIES):
        if os.path.isdir("/new" + library):
            of_python = [name for name in os.listdir("/new" + library) if name.startswith(("python", "pypy"))]
            found.extend("%s/%s/%s" % (library, name, folder) for name in of_python for folder in PACKAGES)
    plain = lambda path: os.path.isdir("/new" + path) and os.path.realpath("/new" + path) == os.path.realpath("/new" + prefix) + path[len(prefix) :]
    return sorted(path for path in found if plain(path))


def apply(entry, number, payload):
    if entry["kind"] == "no-packages":
        for path in folders_of_packages(entry["prefix"]):
            mount("tmpfs", "/new" + path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k,mode=555")
        return
    kind, target = entry["kind"], plain("/new", entry["inside"])
    if kind == "tmpfs":
        os.makedirs(target, exist_ok=True)
        mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "size=%d,mode=1777" % entry["bytes"])
        return
    if kind == "scratch":
        source = "%s/scratch-%d" % (payload, number)
        os.mkdir(source)
        bind(source, target, False)
        return
    source = plain(payload, entry["sent"]) if "sent" in entry else plain("/old", entry["image"])
    if kind == "overlay":
        layers = "/layers-%d" % number
        os.mkdir(layers)
        # A folder of the image that a job of gistmill's own writes to has no bound but the container's.
        size = "size=%d" % entry["bytes"] if "bytes" in entry else None
        mount("tmpfs", layers, "tmpfs", MS_NOSUID | MS_NODEV, size)
        os.mkdir(layers + "/upper")
        os.mkdir(layers + "/work")
        os.makedirs(target, exist_ok=True)
        escaped = source.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")
        data = "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,userxattr" % (escaped, layers, layers)
        mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, data)
    else:
        bind(source, target, kind == "read-only")


def show_sys():
    os.mkdir("/new/sys")
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("tmpfs", "/new/sys", "tmpfs", flags, "size=64k,mode=755")
    for name in SHOWN_OF_SYS:
        if os.path.exists("/old/sys/" + name):
            bind("/old/sys/" + name, "/new/sys/" + name)
    mount(None, "/new/sys", None, flags | MS_REMOUNT | MS_BIND | MS_RDONLY)


def protect_kernel_settings():
    """Folders below /proc, but for those of processes, and whatever can be written there become read-only."""
    for name in os.listdir("/proc"):
        path = "/proc/" + name
        if name.isdigit() or os.path.islink(path):
            continue
        if os.path.isdir(path) or os.stat(path).st_mode & 0o222:
            try:
                bind(path, path)
            except Trouble:
                # Not ours to bind where the engine shows its own /proc: it is read-only there.
                if os.access(path, os.W_OK):
                    raise
    for name in MASKED:
        if os.path.exists("/proc/" + name):
            bind("/dev/null", "/proc/" + name)


def start_process_ids_high():
    """Process IDs begin far above the small numbers that tests print, so that an ID can be told from a count."""
    try:
        with open("/proc/sys/kernel/pid_max") as file:
            highest = int(file.read())
        write("/proc/sys/kernel/ns_last_pid", str(highest // 3 * 2))
    except (OSError, ValueError):
        pass


# ---- privileges and the job --------------------------------------------------------------------------------------------


def enter_namespaces(own_processes):
    user, group = os.geteuid(), os.getegid()
    flags = NEW_USER | NEW_NS | NEW_CGROUP | NEW_IPC | NEW_UTS | (NEW_PID if own_processes else 0)
    check("entering new namespaces", libc.unshare(flags))
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", "%d %d 1" % (USER_ID, user))
    write("/proc/self/gid_map", "%d %d 1" % (USER_ID, group))


def lock_mounts():
    """An inner namespace: what was mounted so far cannot be changed or uncovered from within it."""
    check("locking the mounts", libc.unshare(NEW_USER | NEW_NS))
    for name in ("uid_map", "gid_map"):
        write("/proc/self/" + name, "%d %d 1" % (USER_ID, USER_ID))


def drop_privileges(may_mount):
    kept = FOR_MOUNTING if may_mount else ()
    keep = sum(1 << capability for capability in kept)
    for capability in range(64):
        if not keep & (1 << capability):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == -1 and ctypes.get_errno() != errno.EINVAL:
                check("dropping a capability", -1)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    low, high = keep & 0xFFFFFFFF, keep >> 32
    check("dropping capabilities", libc.capset(header, (ctypes.c_uint32 * 6)(low, low, low, high, high, high)))
    for capability in kept:
        check("keeping the right to mount", libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))
    check("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def leave_keyring():
    """A new, empty session keyring; the filter of system calls has the last word on keys."""
    libc.syscall(SYS_KEYCTL[platform.machine()], KEYCTL_JOIN_SESSION_KEYRING, None)


class Filter(ctypes.Structure):
    _fields_ = [("lines", ctypes.c_ushort), ("program", ctypes.c_char_p)]


def filter_calls(plan):
    """From now on this process, and all that it starts, are held to the driver's filter of system calls."""
    program = bytes.fromhex(plan["filters"][platform.machine()])
    given = Filter(len(program) // 8, program)
    number = SYS_SECCOMP[platform.machine()]
    flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW
    check("filtering system calls", libc.syscall(number, SECCOMP_SET_MODE_FILTER, flags, ctypes.byref(given)))


def limit(plan):
    limits = plan["limits"]
    for name, what in (("memory", resource.RLIMIT_AS), ("processes", resource.RLIMIT_NPROC), ("file_size", resource.RLIMIT_FSIZE)):
        if limits[name]:
            resource.setrlimit(what, (limits[name], limits[name]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def become_job(plan, out):
    """In the child: never returns."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open("/dev/null", os.O_RDONLY)
        if plan["channel"]:
            # Whatever lies on 3 and 4 is ours and not needed here.
            requests, answers = os.dup(0), os.dup(out)
            high = [os.dup2(one, 100 + place, False) for place, one in enumerate((requests, answers))]
            os.dup2(high[0], CHANNEL_IN)
            os.dup2(high[1], CHANNEL_OUT)
            os.dup2(2, 1)
        else:
            os.dup2(out, 1)
        os.dup2(nothing, 0)
        keep = 5 if plan["channel"] else 3
        lock_mounts()
        os.closerange(keep, 1024)
        limit(plan)
        os.chdir(plan["cwd"])
        drop_privileges(plan["may_mount"])
        leave_keyring()
        filter_calls(plan)
        os.execvpe(plan["argv"][0], plan["argv"], plan["env"])
    except BaseException as error:
        try:
            os.write(2, ("gistmill sandbox: starting %s: %s\n" % (plan["argv"][0], error)).encode())
        finally:
            os._exit(SETUP_FAILED)


def supervise(job, out, kind, watched, relay):
    """Pass on what the job says until it ends or the driver goes away; gives its code and whether the driver is there."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    watched.register(0, select.POLLIN if relay else 0)
    watched.register(reader, select.POLLIN)
    watched.register(out, select.POLLIN)
    while True:
        code = reap(job)
        if code is not None:
            return code, True
        for descriptor, events in watched.poll():
            if descriptor == 0 and events & (select.POLLHUP | select.POLLERR):
                return 128 + signal.SIGKILL, False
            if descriptor == 0:
                data = os.read(0, CHUNK)
                if not data:
                    return 128 + signal.SIGKILL, False
                relay.take(data)
            elif relay and relay.owns(descriptor):
                relay.handle(descriptor)
            elif descriptor == reader:
                os.read(reader, CHUNK)
            elif descriptor == out:
                data = os.read(out, CHUNK)
                if data:
                    emit(kind, data)
                else:
                    watched.unregister(out)


def reap(job):
    """The exit code of the job once it has ended; takes in whoever else has."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return None
        if pid == 0:
            return None
        if os.WIFSTOPPED(status):
            if pid == job:  # nobody would let it go on
                return 128 + signal.SIGSTOP
        elif pid == job:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def end_all():
    """In the first process of the process namespace: everything else ends."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def drain(out, kind):
    while True:
        data = os.read(out, CHUNK)
        if not data:
            return
        emit(kind, data)


def run(plan):
    """In the first process of the namespaces."""
    check("parent-death signal", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    name = plan["user"].encode()
    libc.sethostname(name, len(name))
    folder = "/tmp/payload" if plan["on_disk"] else BASE + "/payload"
    os.makedirs(folder)
    unpack(folder)
    payload = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    build_root(plan, "/old" + folder if plan["on_disk"] else "/payload")
    if plan["own_processes"]:
        start_process_ids_high()
        protect_kernel_settings()
    watched = select.poll()
    relay = Relay(plan["service"], emit, watched) if plan["service"] else None
    out, other = os.pipe()
    job = os.fork()
    if job == 0:
        become_job(plan, other)
    os.close(other)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    kind = b"c" if plan["channel"] else b"o"
    code, driver = supervise(job, out, kind, watched, relay)
    end_all()
    drain(out, kind)
    if plan["send_back"]:
        send_back(payload, plan["send_back"], plan["most_left"])
    emit(b"x", str(code).encode())
    return code


def main():
    try:
        plan = json.loads(read_exactly(read_length()))
        enter_namespaces(plan["own_processes"])
        child = os.fork()
    except (Trouble, OSError, ValueError, KeyError) as error:
        emit(b"e", str(error).encode())
        return SETUP_FAILED
    if child == 0:
        try:
            code = run(plan)
        except BaseException as error:
            emit(b"e", ("%s: %s" % (type(error).__name__, error)).encode())
            code = SETUP_FAILED
        os._exit(min(code, 255))
    # Only the first process talks on; without it the container is over.
    os.close(0)
    os.close(1)
    while True:
        try:
            _, status = os.waitpid(child, 0)
            break
        except InterruptedError:
            pass
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


sys.exit(main())
