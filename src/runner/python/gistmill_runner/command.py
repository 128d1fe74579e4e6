"""What Python does when it starts a command, in a process that is Python already."""

import os
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader

_ABSOLUTE = sys.version_info >= (3, 9)


def run(entry, root, probe, ended, go=None):
    """Run a command in its surroundings. Gives its exit status; `ended` is called when the command's own code is over.
    `go` is what `surround` gave, where that was called before."""
    if go is None:
        os.environ.update(entry.get("env") or {})
    _give(entry.get("given") or {}, root)
    _standard_input(entry.get("stdin"), root)
    os.chdir(os.path.join(root, entry.get("cwd") or ""))
    if go is None:
        _become_main()
    what = entry["command"]
    return _to_its_end(go or (lambda: (_prepared(what) if probe is None else _probed(what, root, probe))()), ended)


def surround(entry, root):
    """Give this process the variables, folder, arguments and main module of a command. Returns what runs it."""
    os.environ.update(entry.get("env") or {})
    os.chdir(os.path.join(root, entry.get("cwd") or ""))
    _become_main()
    return _prepared(entry["command"])


def _prepared(what):
    return {"script": _script, "module": _module, "console": _console, "code": _code}[what["kind"]](what)


def _give(files, root):
    """Have files of the tree say something else."""
    for path, text in files.items():
        with open(os.path.join(root, path), "w", encoding="utf-8", newline="") as file:
            file.write(text)


def _standard_input(given, root):
    if not given:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    elif "text" in given:
        descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC)
        os.write(descriptor, given["text"].encode("utf-8"))
        os.lseek(descriptor, 0, 0)
    else:
        descriptor = os.open(os.path.join(root, given["file"]), os.O_RDONLY)
    os.dup2(descriptor, 0)
    os.close(descriptor)


def _become_main():
    """Leave nothing of the runner in the main module."""
    main = vars(sys.modules["__main__"])
    for name in list(main):
        if name not in ("__name__", "__builtins__"):
            del main[name]
    main.update(__doc__=None, __package__=None, __spec__=None, __loader__=BuiltinImporter, __annotations__={})


def _arguments(first, what, original):
    sys.argv[:] = [first] + what["arguments"]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.orig_argv[0]] + original + what["arguments"]


def _first_on_path(folder):
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _script(what):
    return _file(what["path"], what)


def _file(path, what):
    _first_on_path(os.path.dirname(os.path.realpath(path)))
    _arguments(path, what, [path])
    return _in_main(path)


def _in_main(path):
    """Run a file as the main module. One that cannot be read is for Python to complain about."""
    if not os.path.isfile(path):
        return lambda: os.execv(sys.executable, [sys.executable] + sys.argv)
    named = os.path.abspath(path) if _ABSOLUTE else path
    main = vars(sys.modules["__main__"])
    main.update(__file__=named, __cached__=None, __loader__=SourceFileLoader("__main__", named))
    return lambda: exec(_compiled(path, named), main)


def _compiled(path, named):
    with open(path, "rb") as file:
        return compile(file.read(), named, "exec", dont_inherit=True)


def _module(what):
    _first_on_path(os.getcwd())
    _arguments("-m", what, ["-m", what["name"]])
    return lambda: runpy._run_module_as_main(what["name"])


def _console(what):
    """A script that is installed. What is not a script of Python is started instead."""
    path = os.path.join(os.path.dirname(sys.executable), what["name"])
    try:
        with open(path, "rb") as file:
            is_python = b"python" in file.readline(4096)
    except OSError:
        is_python = False
    if not is_python:
        return lambda: os.execv(path, [path] + what["arguments"])
    return _file(path, what)


def _code(what):
    _first_on_path("")
    _arguments("-c", what, ["-c", what["text"]])
    main = vars(sys.modules["__main__"])
    return lambda: exec(compile(what["text"], "<string>", "exec", dont_inherit=True), main)


def _probed(what, root, probe):
    """The same code as the file of a submission, in the root of the tree."""
    path = os.path.join(root, probe)
    main = vars(sys.modules["__main__"])
    parent = None
    if what["kind"] == "module":
        _first_on_path(os.getcwd())
        _, specification, code = runpy._get_module_details(what["name"])
        parent, text = specification.parent, None
    elif what["kind"] == "code":
        _first_on_path(os.getcwd())
        text = what["text"].encode("utf-8")
    else:
        folder = os.path.dirname(sys.executable)
        original = what["path"] if what["kind"] == "script" else os.path.join(folder, what["name"])
        _first_on_path(os.path.dirname(os.path.realpath(original)))
        with open(original, "rb") as file:
            text = file.read()
    with open(path, "wb") as file:
        file.write(text or b"")
    named = os.path.relpath(path)
    _arguments(named, what, [named])
    main.update(__file__=path if _ABSOLUTE else named, __cached__=None, __package__=parent)
    main.update(__loader__=SourceFileLoader("__main__", path))
    if text is not None:
        return lambda: exec(compile(text, path, "exec", dont_inherit=True), main)
    return lambda: exec(code, main)


def _to_its_end(go, ended):
    """Run a command as Python does. Gives the exit status; what comes after that is Python's own end."""
    try:
        go()
        status = 0
    except SystemExit as left:
        status = _status(left.code)
    except BaseException as error:
        status = _complain(error)
    ended()
    return status


def _complain(error):
    """What Python does with an exception that nobody handles, without what is the runner's in its traceback."""
    raised = error.__traceback__
    while raised is not None and raised.tb_frame.f_code.co_filename == __file__:
        raised = raised.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, raised
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.excepthook(type(error), error.with_traceback(raised), raised)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _status(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        sys.stdout.flush()
    except Exception:
        pass
    print(code, file=sys.stderr)
    return 1
