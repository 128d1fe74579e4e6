"""What a test can reach beside its own process. Each prints what it found; nothing here needs to succeed."""

import ctypes
import fcntl
import glob
import os
import resource
import socket
import stat
import sys

import plain
import pytest

libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL = 248, 250
SESSION = -3
UNSHARE_FLAGS = {"user": 0x10000000, "mount": 0x00020000, "network": 0x40000000}


def syscall(*arguments):
    result = libc.syscall(*arguments)
    return result if result >= 0 else -ctypes.get_errno()


def test_keyrings():
    seen = []
    for ring in (-1, -2, -3, -4, -5):
        listing = ctypes.create_string_buffer(4096)
        length = syscall(KEYCTL, 11, ring, listing, 4096)
        for at in range(0, max(length, 0), 4):
            key = int.from_bytes(listing.raw[at : at + 4], "little", signed=True)
            content = ctypes.create_string_buffer(4096)
            size = syscall(KEYCTL, 11, key, content, 4096)
            seen.append(content.raw[: max(size, 0)])
    for name in (b"gistmill-test", b"left-by-an-attempt"):
        if syscall(KEYCTL, 10, SESSION, b"user", name, 0) > 0:
            print("FOUND A KEY", name)
    # Numbers of keys differ from one attempt to the next; what they hold is what counts.
    print("keys", [content for content in seen if b"KEY" + b"RING" in content])
    assert plain.value()


def test_leaves_a_key():
    syscall(ADD_KEY, b"user", b"left-by-an-attempt", b"x", 1, SESSION)
    syscall(ADD_KEY, b"user", b"left-by-an-attempt", b"x", 1, -4)
    assert plain.value()


def test_memory_files():
    held = []
    try:
        for _ in range(8):
            descriptor = os.memfd_create("held")
            for _ in range(128):
                os.write(descriptor, b"x" * (1 << 20))
            held.append(descriptor)
        print("HELD A GIBIBYTE")
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert plain.value()


def test_socket_families():
    refused = {}
    for name, family in (("vsock", 40), ("bluetooth", 31), ("nfc", 39), ("infiniband", 27), ("qipcrtr", 42)):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
            try:
                socket.socket(family, kind).close()
                print("MADE A SOCKET", name, kind)
            except OSError:
                refused[name] = True
    try:
        machine = socket.socket(40, socket.SOCK_STREAM)
        machine.settimeout(2)
        machine.connect((2, 9999))
    except OSError as error:
        if error.errno in (104, 110, 111):
            print("REACHED THE MACHINE'S HOST")
    assert plain.value()


def test_namespaces():
    for name, flag in UNSHARE_FLAGS.items():
        child = os.fork()
        if child == 0:
            os._exit(0 if libc.unshare(flag) == 0 else 1)
        if os.waitpid(child, 0)[1] == 0:
            print("NEW NAMESPACE", name)
    child = os.fork()
    if child == 0:
        # clone3 and clone are other doors to the same room.
        pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        if pid > 0:
            os.waitpid(pid, 0)
        os._exit(0 if pid > 0 else 1)
    if os.waitpid(child, 0)[1] == 0:
        print("NEW NAMESPACE by clone")
    arguments = ctypes.create_string_buffer(88)
    arguments[0:8] = (0x10000000).to_bytes(8, "little")
    arguments[32:40] = (17).to_bytes(8, "little")
    child = os.fork()
    if child == 0:
        pid = libc.syscall(435, arguments, 88)
        if pid == 0:
            os._exit(0)
        if pid > 0:
            os.waitpid(pid, 0)
        os._exit(0 if pid > 0 else 1)
    if os.waitpid(child, 0)[1] == 0:
        print("NEW NAMESPACE by clone3")
    assert plain.value()


def test_io_uring():
    parameters = ctypes.create_string_buffer(120)
    if syscall(425, 4, parameters) >= 0:
        print("MADE A RING")
    assert plain.value()


def test_leases():
    # Whoever opens a file waits for who has a lease on it; those of the environment are files of the host.
    for path in ("/opt/venv/pyvenv.cfg", pytest.__file__, plain.__file__, "/etc/passwd"):
        for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
            try:
                with open(path) as file:
                    fcntl.fcntl(file, fcntl.F_SETLEASE, kind)
                    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                print("LEASED", path)
            except OSError:
                pass
    assert plain.value()


def test_limits_of_others():
    # Limits pass on to what a process forks: those of the runner's processes would be those of other tests.
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
                try:
                    resource.prlimit(int(name), limit, resource.prlimit(int(name), limit))
                    print("SET A LIMIT OF", name)
                except OSError:
                    pass
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    assert plain.value()


def test_capabilities():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(("CapEff", "CapPrm", "CapAmb")) and int(line.split()[1], 16):
                print("HAS CAPABILITIES", line)
            if line.startswith("NoNewPrivs") and line.split()[1] != "1":
                print("MAY GAIN PRIVILEGES")
    assert plain.value()


def test_mounts_and_devices():
    for kind, device in ((stat.S_IFCHR, os.makedev(1, 1)), (stat.S_IFBLK, os.makedev(254, 0))):
        try:
            os.mknod("/tmp/device-%d" % kind, 0o666 | kind, device)
            print("MADE A DEVICE", kind)
        except OSError:
            pass
    for source, target, kind, flags in (
        (b"none", b"/tmp", b"tmpfs", 0),
        (b"/", b"/tmp", None, 0x1000),
        (b"none", b"/", None, 0x20 | 0x1000),
    ):
        if libc.mount(source, target, kind, flags, None) == 0:
            print("MOUNTED", target)
    if libc.umount2(b"/testbed", 2) == 0 or libc.chroot(b"/tmp") == 0:
        print("CHANGED THE ROOT")
    assert plain.value()


def test_settings_of_the_kernel():
    names = ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches"]
    names += ["/proc/sys/kernel/hostname", "/sys/kernel/mm/ksm/run", "/dev/kmsg"]
    for name in names:
        try:
            os.close(os.open(name, os.O_WRONLY))
            print("OPENED FOR WRITING", name)
        except OSError:
            pass
    assert plain.value()


def test_the_host_in_sight():
    seen = []
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + glob.glob("@VICTIM@/*"):
        try:
            with open(path, "rb") as file:
                seen.append(file.read())
        except OSError:
            pass
    for path in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/fd/*"):
        try:
            with open(path + "@VICTIM@/home/secret", "rb") as file:
                seen.append(file.read())
        except OSError:
            pass
    print("SAW", [text for text in seen if b"HOST" + b"ONLY" in text])
    assert plain.value()


def test_leaves_what_it_can():
    places = ["/tmp", "/dev/shm", os.path.expanduser("~"), "/testbed", "/opt/venv", "/opt/gistmill", "/run", "/var/tmp"]
    for place in places:
        try:
            with open(place + "/left-by-an-attempt", "w") as file:
                file.write("x")
        except OSError:
            pass
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0left-by-an-attempt")
    listener.listen()
    if os.fork() == 0:
        os.setsid()
        for descriptor in range(3):
            os.close(descriptor)
        import time

        time.sleep(600)
        os._exit(0)
    assert plain.value()


def test_looks_for_what_is_left():
    places = ["/tmp", "/dev/shm", os.path.expanduser("~"), "/testbed", "/opt/venv", "/opt/gistmill", "/run", "/var/tmp"]
    for place in places:
        if os.path.exists(place + "/left-by-an-attempt"):
            print("LEFT IN", place)
    try:
        socket.socket(socket.AF_UNIX).connect("\0left-by-an-attempt")
        print("LEFT A SOCKET")
    except OSError:
        pass
    assert plain.value()


def test_what_is_installed_on_the_machine():
    environment = os.path.realpath(os.environ.get("VIRTUAL_ENV") or os.path.dirname(os.path.dirname(sys.executable)))
    found = set()
    for prefix in ("/usr", "/usr/local", sys.base_prefix):
        for library in ("lib", "lib64"):
            for name in ("site-packages", "dist-packages", "ensurepip/_bundled"):
                for folder in glob.glob("%s/%s/python*/%s" % (prefix, library, name)):
                    if not os.path.realpath(folder).startswith(environment):
                        found.update(os.listdir(folder))
    found.update(os.path.basename(path) for path in glob.glob("/usr/share/python*-wheels/*"))
    print("\n".join(sorted(found)))
    assert plain.value()


def test_interpreters_of_the_machine_still_work():
    for python in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(python):
            import subprocess

            assert subprocess.run([python, "-I", "-c", "import json"]).returncode == 0
    assert plain.value()


def test_names_of_the_host():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        print(sorted({os.path.dirname(word) for word in words if word.startswith(b"/")} - {b"/opt/venv/bin", b"/opt/gistmill/gistmill_runner"}))
    # Of the environment alone: what is mounted above the tree is not the same in every attempt.
    with open("/proc/self/mountinfo") as file:
        for line in file:
            if line.split()[4] == os.path.realpath(sys.prefix):
                print(" ".join(line.split()[:6]))
    assert plain.value()
