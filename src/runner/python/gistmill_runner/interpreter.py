"""The lowest level of the stack: Python with pytest imported, nothing configured, nothing of the repository loaded."""

import importlib.util
import os
import platform
import sys
import traceback

from . import children
from .descriptors import move_up, redirect_standard_streams
from .isolate import hide_memory
from .protocol import Channel, EndOfRequests, encode, loads
from .reseed import Reseed
from .server import Server
from .tree_files import TreeFiles

PROTOCOL = 1
# Of what version and later the runner knows the insides.
_OLDEST_PYTEST = 5
# What pytest does without.
_OWN_MODULES = ("ctypes", "mmap", "resource")


def main(arguments):
    """Serve the keeper on the socket ``--link``; does not return."""
    hide_memory()
    children.die_with_parent()
    server = Server(Channel(move_up(int(arguments[1]))))
    server.raw_output = redirect_standard_streams()
    try:
        first, opened = read_whole(int(arguments[3])) if arguments[2:] else (server.channel.receive(), None)
    except EndOfRequests:
        os._exit(0)
    server.isolated = first["isolated"]
    server.here = os.getcwd()
    server.guarded(greet, server, first, opened is None)
    children.adopt_orphans()
    if has_entries(first):
        from . import entries

        request = server.serve({})
        sys.exit(entries.directory(server, request)())
    from . import apart, discovery, stages

    def generator(server, request):
        from .witness import serving

        serving.open_generator(server, request)

    def directory(server, request):
        server.guarded(put, server, request)
        (apart if request.get("apart") else stages).directory(server, request)

    work = {"open_directory": directory, "discover": discovery.discover, "open_generator": generator}
    request = opened or server.serve({})
    work[request["op"]](server, request)


def put(server, request):
    """Put the texts that the driver gave in the places of files. Where something of the tree is imported already, which may
    be what they replace, this process becomes another interpreter, which imports all of it anew."""
    texts = request.pop("texts", None) or {}
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    files = TreeFiles(os.getcwd())
    if texts and any(files[file] is not None for file in map(file_of, list(sys.modules.values()))):
        begin_anew(server, request)


def file_of(module):
    """The file of a module, as text."""
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else ""


def begin_anew(server, request):
    """Become an interpreter that has just been started, with this request; does not return."""
    environment, link = children.environment_at_start(), server.channel.detach()
    told = os.memfd_create("request", 0)
    with open(told, "wb", closefd=False) as file:
        file.write(encode([server.hello, request]))
    os.set_inheritable(link, True)
    main = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    os.execve(sys.executable, [sys.executable, main, "--link", str(link), "--opened", str(told)], environment)


def read_whole(descriptor):
    """What `begin_anew` left for this process."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return loads(file.read())


def has_entries(hello):
    """Whether commands are run instead of tests: then nothing of pytest is imported."""
    return bool((hello.get("world") or {}).get("entries"))


def greet(server, request, answers=True):
    """Answer the first request; refuses, and exits once closed, when pytest cannot be imported."""
    server.hello = request
    if has_entries(request):
        server.reseed = Reseed()
        return greeting(server, "")
    pretend_to_be_pytest()
    try:
        import pytest
    except BaseException:
        server.channel.send("refused", reason=traceback.format_exc())
        server.serve({})
    if int(pytest.__version__.split(".")[0]) < _OLDEST_PYTEST:
        reason = "pytest %s is too old: %d.0 or newer is needed" % (pytest.__version__, _OLDEST_PYTEST)
        server.channel.send("refused", reason=reason)
        server.serve({})
    import _pytest.config

    for name in _pytest.config.default_plugins:
        importlib.import_module("_pytest." + name)
    sys.modules["__main__"].pytest = pytest
    from . import probe

    server.reseed = Reseed()
    world = request.get("world") or {}
    if world.get("moved"):
        probe.use_byte_code()
    if answers:
        greeting(server, pytest.__version__)


def greeting(server, pytest_version):
    """Say that requests are taken."""
    server.channel.send(
        "hello",
        protocol=PROTOCOL,
        python=platform.python_version(),
        implementation=sys.implementation.name,
        pytest=pytest_version,
        pid=os.getpid(),
    )


def forget_own_modules():
    """Have modules of the standard library that the runner alone has imported be imported anew: the tree may have others of
    these names, which a cold run finds first."""
    for name in list(sys.modules):
        if name.partition(".")[0] in _OWN_MODULES:
            del sys.modules[name]


def pretend_to_be_pytest():
    """Make this process look like ``python -m pytest`` before it imports anything: path, arguments, main module."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.getcwd())
    main = sys.modules["__main__"]
    specification = None
    try:
        package = importlib.util.find_spec("pytest")
        if package is not None and package.submodule_search_locations:
            location = os.path.join(list(package.submodule_search_locations)[0], "__main__.py")
            specification = importlib.util.spec_from_file_location("pytest.__main__", location)
    except Exception:
        pass
    if specification is None:
        return
    for name in list(vars(main)):
        if name not in ("__name__", "__builtins__"):
            delattr(main, name)
    main.__doc__ = "The pytest entry point."
    main.__package__ = "pytest"
    main.__spec__ = specification
    main.__loader__ = specification.loader
    main.__file__ = specification.origin
    main.__cached__ = specification.cached
    set_arguments([])


def set_arguments(arguments):
    """Give ``sys`` the arguments that the entry command has."""
    file = getattr(sys.modules["__main__"], "__file__", "pytest")
    sys.argv[:] = [file] + arguments
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.orig_argv[0], "-m", "pytest"] + arguments
