"""Overlays that keep what one attempt writes from every other, and the privileges that this takes.

The keeper alone mounts; the levels see its mounts, because all share one mount namespace. Every place (the tree, and each
writable directory) is an overlay of its own. Overlays do not nest deeper than two, so layers are listed, not stacked: a
directory process writes into its layer above the pristine place; a file process into its layer above that one; the attempts
of a file into one more. A layer in which nothing was written is left out. An attempt that wrote nothing in a place leaves
that place's overlay to the next attempt: most attempts cost no mount at all. Whoever comes on top of the stack finds its
working directory by its path again: what it was forked with lies below.

    scratch/pristine/<place>                           the place as it was, bound
    scratch/level-<number>/<place>-0/{upper,work}      what a directory or file process wrote
    scratch/attempt-<number>/<place>-<n>/{upper,work}  what an attempt writes
"""

import ctypes
import os
from os import close, mkdir, rename, rmdir, scandir, stat, unlink

from .descriptors import move_up

_libc = ctypes.CDLL(None, use_errno=True)
_mount = _libc.mount
_mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_umount2 = _libc.umount2
_umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
_prctl = _libc.prctl
_capset = _libc.capset
_unshare = _libc.unshare
_chmod = os.chmod
_open, _write, _O_WRONLY = os.open, os.write, os.O_WRONLY | os.O_CLOEXEC
_fsencode = os.fsencode
_strerror = os.strerror

_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x1000, 0x4000, 1 << 18
_MNT_DETACH = 2
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522


class IsolationError(OSError):
    """A mount or a privilege change did not work."""


def _check(result, action):
    if result != 0:
        number = ctypes.get_errno()
        raise IsolationError(number, "%s: %s" % (action, _strerror(number)))


def _mount_overlay(place, lowers, layer):
    """Mount lower directories (uppermost first) under the upper one of `layer` at `place`."""
    lower, layer = ":".join(map(_escape, lowers)), _escape(layer)
    options = "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (lower, layer, layer)
    global _overlay_flags
    for flags in _overlay_flags:
        if _mount(b"overlay", _fsencode(place), b"overlay", 0, _fsencode(options + flags)) == 0:
            _overlay_flags = (flags,)
            return
    _check(-1, "mount an overlay at %s" % place)


# Inside a user namespace overlays keep their attributes in user.*; where that is not to be had, the default may be.
_overlay_flags = (",userxattr", "")


def _escape(path):
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _remove_tree(path):
    """Remove a directory and all below it, whatever permissions a test has left there, and however deep it is.

    Directories are moved beside `path`, where only the keeper reaches, before they are emptied: what a test nests can be
    deeper than a path is long, and what it still holds open it may exchange for a link.
    """
    folders, count = [path], 0
    while folders:
        folder = folders.pop()
        descriptor = _open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _chmod(descriptor, 0o700)
            with scandir(descriptor) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
            for name, is_folder in entries:
                if not is_folder:
                    unlink(name, dir_fd=descriptor)
                    continue
                count += 1
                beside = "%s-%d" % (path, count)
                rename(name, beside, src_dir_fd=descriptor)
                if os.path.islink(beside):
                    unlink(beside)
                else:
                    folders.append(beside)
        finally:
            close(descriptor)
        rmdir(folder)


class Layer:
    """One upper directory, by its path below the scratch directory, and what it looked like when it was mounted."""

    def __init__(self, name, base, mode):
        self.name = name
        path = base + "/" + name
        mkdir(path, 0o700)
        mkdir(path + "/upper")
        mkdir(path + "/work")
        _chmod(path + "/upper", mode)
        self.fresh = None

    def mounted(self, base):
        """It is in use from now on (mounting leaves marks of its own)."""
        self.fresh = self._look(base)

    def _look(self, base):
        state = stat(base + "/" + self.name + "/upper")
        return state.st_mtime_ns, state.st_ctime_ns

    def untouched(self, base):
        """Whether nothing was ever written, deleted or changed in it. Times alone do not tell: on older kernels they have
        the grain of a clock tick, and a fast test may write within it."""
        if self._look(base) != self.fresh:
            return False
        try:
            with scandir(base + "/" + self.name + "/upper") as entries:
                return next(entries, None) is None
        except PermissionError:
            return False


class Place:
    """One directory that tests may write to, as an overlay."""

    def __init__(self, path, pristine, number):
        self.path = path
        self.number = number
        self.lowers = [pristine]
        self.layer = None

    def unmount(self):
        """Take the overlay away that is mounted there, if one is."""
        if self.layer is not None:
            _check(_umount2(_fsencode(self.path), _MNT_DETACH), "unmount %s" % self.path)
            self.layer = None

    def keep_layer(self, base):
        """Have what was written so far below the layers to come, and take its overlay away."""
        layer = self.layer
        self.unmount()
        if layer is not None and not layer.untouched(base):
            self.lowers.insert(0, layer.name + "/upper")

    def mount(self, base, name):
        """Mount it with a new layer on top."""
        layer = Layer(name, base, stat(base + "/" + self.lowers[0]).st_mode & 0o7777)
        _mount_overlay(self.path, [base + "/" + lower for lower in self.lowers], base + "/" + name)
        self.layer = layer
        layer.mounted(base)


class Isolation:
    """The places and what is mounted there, for the level that is on top.

    The scratch directory lies hidden under an empty one; the keeper reaches its layers through a descriptor, by way of
    `base`.
    """

    def __init__(self, settings):
        self.scratch = os.path.realpath(settings["scratch"])
        self.count = 0
        self.levels = []
        self.places = []
        _check(_unshare(_CLONE_NEWNS), "unshare the mount namespace")
        _check(_mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make mounts private")
        for number, path in enumerate([settings["root"]] + list(settings.get("writable", ()))):
            path = os.path.realpath(path)
            pristine = "pristine/%d" % number
            bound = self.scratch + "/" + pristine
            os.makedirs(bound, exist_ok=True)
            _check(_mount(_fsencode(path), _fsencode(bound), None, _MS_BIND, None), "bind %s" % path)
            self.places.append(Place(path, pristine, number))
        self.descriptor = move_up(os.open(self.scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self.base = "/proc/self/fd/%d" % self.descriptor
        _check(_mount(b"none", _fsencode(self.scratch), b"tmpfs", _MS_RDONLY, b"size=4k,mode=555"), "hide %s" % self.scratch)

    def enter_level(self):
        """Before a directory, discovery or file process is forked: fresh layers above what the level below wrote."""
        self.levels.append(([], []))
        for place in self.places:
            place.keep_layer(self.base)
        self.levels[-1][1].extend(list(place.lowers) for place in self.places)
        self._renew("level")

    def enter_attempts(self):
        """Before the first attempt of a file: layers for the attempts above what the import wrote."""
        for place in self.places:
            place.keep_layer(self.base)
        self._renew("attempt")

    def _renew(self, kind):
        self.count += 1
        directory = "%s-%d" % (kind, self.count)
        mkdir(self.base + "/" + directory, 0o700)
        self.levels[-1][0].append(directory)
        for place in self.places:
            place.mount(self.base, "%s/%d-0" % (directory, place.number))

    def discard_attempt(self):
        """After an attempt: throw away what it wrote."""
        for place in self.places:
            layer = place.layer
            if not layer.untouched(self.base):
                place.unmount()
                _remove_tree(self.base + "/" + layer.name)
                self.count += 1
                place.mount(self.base, "%s/%d-%d" % (self.levels[-1][0][-1], place.number, self.count))

    def leave_level(self):
        """Once the processes of a level are gone: throw away what it and its attempts wrote."""
        directories, lowers = self.levels.pop()
        for place, before in zip(self.places, lowers):
            place.unmount()
            place.lowers = before
        for directory in directories:
            try:
                _remove_tree(self.base + "/" + directory)
            except OSError:
                pass  # nothing is mounted above it any more: it costs room, and nobody sees it


def hide_memory(is_hidden=True):
    """Keep other processes of this user from the memory and the descriptors of this one, or let them again."""
    _prctl(_PR_SET_DUMPABLE, 0 if is_hidden else 1, 0, 0, 0)


def become_expendable():
    """Have the kernel end this process first when memory runs out: those that watch it can tell then."""
    try:
        descriptor = _open("/proc/self/oom_score_adj", _O_WRONLY)
    except OSError:
        return
    try:
        _write(descriptor, b"1000")
    except OSError:
        pass
    finally:
        close(descriptor)


def become_ordinary():
    """Give up every capability for good: what whoever runs foreign code runs as."""
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
    _check(_prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "clear ambient capabilities")
    _check(_capset(_capability_header, _no_capabilities), "drop capabilities")


_capability_header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
_no_capabilities = (ctypes.c_uint32 * 6)()
