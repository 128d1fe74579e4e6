"""Entries: commands of the repository that are no tests. Each attempt is a fork of an interpreter that has imported nothing
of the repository and no pytest; it becomes what Python is when the command starts it, and ends as Python ends.

The levels are those of test files. What a command shows is read by the process below it, which runs no code of the
repository: nothing that the command does to its own memory or descriptors changes what is reported.
"""

import fcntl
import gc
import hashlib
import importlib
import os
import re
import sys
import traceback
from mmap import mmap
from os import _exit, fstat, ftruncate, lseek, pread
from resource import RUSAGE_CHILDREN, getrusage
from time import monotonic_ns

from . import children, command, network, tree_state
from .descriptors import move_up
from .isolate import become_expendable, hide_memory
from .protocol import clean, encode
from .server import EXIT_INTERNAL_ERROR
from .shared import GroupReport
from .watch import FileWatcher, ImportWatcher

_OUTPUT_LIMIT = 1 << 20
_MESSAGE_LIMIT = 4000
_NAME = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")
_INPUT, _TERMINAL = 1, 2
_WANTS = {_INPUT: "input", _TERMINAL: "terminal"}
_PACKAGE = __name__.partition(".")[0]
_SAID = tuple('["%s",' % kind for kind in ("trace", "execution", "connections", "imports", "opened"))


def directory(server, request):
    """The directory process of entries: there is nothing to configure. Returns, in an attempt, what the process is to do."""
    world = server.hello.get("world") or {}
    if request.get("trace", "off") == "lines":
        from .execution import Execution

        server.tracer = server.guarded(Execution, os.getcwd())
    elif request.get("trace", "off") != "off":
        from . import followed  # noqa: F401 (here, so that no attempt has to)
        from .tracer import Tracer

        server.tracer = server.guarded(Tracer, os.getcwd(), request["trace"])
    if world.get("watched"):
        server.watcher = server.guarded(ImportWatcher, world["watched"])
    if world.get("notes_files"):
        server.opened = server.guarded(FileWatcher, os.getcwd())
    server.ready()
    server.channel.send("directory_ready")
    gc.collect()
    return file(server, server.serve({}))


def file(server, request):
    """The file process: it knows all entries of the world, and has the text that is judged."""
    if request.get("text") is not None:
        server.guarded(write_submission, server, request["text"])
    runner = server.guarded(Entries, server)
    server.ready()
    summary = {"import": server.tracer.import_summary()} if server.tracer else {}
    server.channel.send("file_ready", items=runner.items(), errors=[], **summary)
    gc.freeze()
    gc.unfreeze()
    return server.serve({"run": runner.run})


def write_submission(server, text):
    """Put the text that is judged in its place."""
    with open(os.path.join(os.getcwd(), server.hello["world"]["submission"]), "w", encoding="utf-8", newline="") as file:
        file.write(text)


class Entries:
    """Forks one process per attempt, and says what it showed."""

    def __init__(self, server):
        self.server = server
        world = server.hello.get("world") or {}
        self.root = os.getcwd()
        self.entries = world["entries"]
        self.probe = world.get("probe")
        self.limit = (server.hello.get("limits") or {}).get("output_bytes") or _OUTPUT_LIMIT
        self.report = GroupReport()
        self.streams = [_memory(name) for name in ("stdout", "stderr")]
        self.asked = mmap(-1, 1)
        self.followed = None
        self.before = tree_state.state(self.root)

    def items(self):
        """The entries in the words of the protocol: each an item of one function."""
        return [
            {
                "index": index,
                "node_id": "entry::" + entry["name"],
                "file": "entry",
                "classes": [],
                "function": entry["name"],
                "parameters": None,
                "kind": "function",
            }
            for index, entry in enumerate(self.entries)
        ]

    # In the file process.

    def run(self, request):
        """Handle one `run` request: an attempt. Returns what its process is to do, in that process."""
        server = self.server
        self.report.reset()
        self.asked[0] = 0
        for stream in self.streams:
            lseek(stream, 0, 0)
            ftruncate(stream, 0)
        (index,) = request["items"]
        entry = self.entries[index]
        spared = set() if children.none_left() else children.living()
        random_state = server.reseed.before_fork()
        used, start = _processor_seconds(), monotonic_ns()
        pid = server.fork()
        if pid == 0:
            return self._become(entry, random_state, not request.get("untraced"))
        limits = [int(request[name]) for name in ("case_timeout_ms", "group_timeout_ms") if request.get(name)]
        deadline = start + min(limits) * 1_000_000 if limits else None
        status, memory = children.measured_wait(pid, lambda: deadline)
        is_late = status is None
        if is_late:
            children.kill_and_wait(pid)
        leftover = 0 if children.none_left() else children.kill_leftovers(spared)
        duration = (monotonic_ns() - start) / 1e6
        exit = {"kind": "timed_out", "scope": "case", "index": index} if is_late else children.exit_of(status)
        self._answer((index, entry), exit, pid, leftover, (duration, _processor_seconds() - used, memory))
        return None

    def _answer(self, what, exit, pid, leftover, usage):
        duration, used, memory = usage
        report, raw_output = self.report.text(), ""
        code = exit.get("code")
        if code == EXIT_INTERNAL_ERROR and report and '["internal"' in report:
            pass
        elif code is None:
            raw_output = "".join(_read(stream, self.limit)[0] for stream in self.streams)
        elif report is not None:
            # What it says of itself is what was seen of it, and never how it ended.
            report = "".join(line + "\n" for line in report.split("\n") if line.startswith(_SAID))
            case = self._case(what, code, pid, duration)
            for kind, value in (("case", case), ("end", {"pytest_exit": 0, "pytest_error": None})):
                report += encode([kind, value]).decode("ascii") + "\n"
            exit = {"kind": "exited", "code": 0}
        self.server.channel.send(
            "group_done",
            report=report,
            exit=exit,
            leftover=leftover,
            raw_output=clean(raw_output)[0],
            duration_ms=round(duration, 3),
            processor_ms=round(used * 1000, 3),
            memory_bytes=memory,
        )

    def _case(self, what, code, pid, duration):
        index, entry = what
        case = {"index": index, "status": code, "duration_ms": round(duration, 3), "process_ids": [pid]}
        for name, stream in zip(("stdout", "stderr"), self.streams):
            case[name], sha256, size = _read(stream, self.limit)
            if sha256 is not None:
                case.update({"truncated": True, name + "_sha256": sha256, name + "_bytes": size})
        case["exception"] = exception_of(code, case["stderr"])
        expected = entry.get("exit", 0)
        case["outcome"] = "passed" if code == expected else "failed"
        if code != expected:
            words = "leaves with status %d, expected is %d" % (code, expected)
            case["message"] = words + "\n" + case["stderr"][-_MESSAGE_LIMIT:]
            if self.asked[0]:
                case["wants"] = _WANTS[self.asked[0]]
        case["files"] = tree_state.changes(self.root, self.before, ignored=self.probe)
        return case

    # In the process of an attempt.

    def _become(self, entry, random_state, is_traced):
        """Make ready for the command. Returns what runs it, once nothing of the runner is below it any more."""
        server, process = self.server, os.getpid()

        def guarded(function, *arguments):
            try:
                return function(*arguments)
            except BaseException:
                if os.getpid() == process:
                    self.report.append("internal", traceback.format_exc())
                _exit(EXIT_INTERNAL_ERROR)

        def ready():
            os.setsid()
            children.die_with_parent()
            server.signals.restore()
            server.reseed.after_fork(random_state)
            server.channel.close()
            hide_memory(False)
            become_expendable()
            for number, stream in enumerate(self.streams, 1):
                os.dup2(stream, number)
            for descriptor in [*self.streams, server.raw_output]:
                os.close(descriptor)
            self.connections = network.watch()
            sys.addaudithook(asking(self.asked))

        guarded(ready)
        tracer = server.tracer if is_traced else None
        if server.tracer is not None and tracer is None:
            server.tracer.stop()

        def ended():
            if os.getpid() != process:
                return
            if tracer is not None:
                summary = tracer.group_summary()
                if self.followed is not None:
                    summary["child_calls"] = self.followed.calls()
                self.report.append(tracer.kind, summary)
            for kind, watcher in (("imports", server.watcher), ("opened", server.opened)):
                seen = watcher.taken() if watcher is not None else None
                if seen:
                    self.report.append(kind, seen)
            if self.connections:
                self.report.append("connections", self.connections)

        def starts():
            if tracer is not None and tracer.kind == "trace":
                self.followed = followed.Children(tracer.files.root)
            hide(entry)
            if tracer is not None:
                tracer.start_group()

        if tracer is not None:
            from . import followed

        def go():
            guarded(starts)
            return command.run(entry, self.root, self.probe, lambda: guarded(ended))

        return go


def hide(entry):
    """Have the command find no module of the runner."""
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]
    for name in ("ctypes", "mmap", "resource"):
        sys.modules.pop(name, None)
    # Who imports the package alone does not find in it what the runner imported; `python -m` imports it as well.
    for name in () if entry["command"]["kind"] == "module" else ("abc", "machinery", "util"):
        if sys.modules.pop("importlib." + name, None) is not None:
            delattr(importlib, name)


def asking(flag):
    """An audit hook that notes in shared memory whether the command asks somebody for input."""

    def hook(event, arguments):
        if event == "builtins.input":
            flag[0] = _INPUT
        elif event == "open" and arguments[0] == "/dev/tty":
            flag[0] = _TERMINAL

    return hook


def exception_of(code, stderr):
    """The type of the exception that ended a command, as far as the traceback at the end of its errors says it."""
    if code != 1 or "Traceback (most recent call last):" not in stderr:
        return None
    after = stderr[stderr.rindex("Traceback (most recent call last):") :].split("\n")[1:]
    named = [line for line in after if line and not line.startswith((" ", "\t"))]
    match = _NAME.match(named[0]) if named else None
    return match.group(1) if match else None


def _memory(name):
    memory = os.memfd_create(name, os.MFD_CLOEXEC)
    fcntl.fcntl(memory, fcntl.F_SETFL, fcntl.fcntl(memory, fcntl.F_GETFL) | os.O_APPEND)
    return move_up(memory)


def _read(stream, limit):
    """What a stream has, as text, and where that is cut, the hash and the number of all its bytes."""
    size = fstat(stream).st_size
    text = pread(stream, limit, 0).decode("utf-8", "backslashreplace")
    if size <= limit:
        return clean(text)[0], None, size
    sha256, offset = hashlib.sha256(), 0
    while offset < size:
        part = pread(stream, 1 << 20, offset)
        if not part:
            break
        sha256.update(part)
        offset += len(part)
    return clean(text)[0], sha256.hexdigest(), size


def _processor_seconds():
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
