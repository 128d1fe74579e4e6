"""Entries: commands of the repository that are no tests. Each attempt is a fork of an interpreter that has imported nothing
of the repository and no pytest; it becomes what Python is when the command starts it, and ends as Python ends. Of several
attempts the later ones are forks of an interpreter that has imported what the first one imported of others (see `warm`).

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

from . import children, command, network, tree_state, warm
from .descriptors import move_up
from .isolate import become_expendable, hide_memory
from .protocol import clean, encode, loads
from .server import EXIT_INTERNAL_ERROR
from .shared import GroupReport
from .watch import FileWatcher, ImportWatcher

_OUTPUT_LIMIT = 1 << 20
_MESSAGE_LIMIT = 4000
_NAME = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")
_INPUT, _TERMINAL = 1, 2
# What importing ahead may take, and the fork of an attempt.
_PATIENCE_NS = 5_000_000_000
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
        self.place = mmap(-1, 8)
        # The entry that there is a warm process for, that process, and what its first attempt has to show.
        self.index = self.warm = self.expected = None
        self.cold = set()
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
        self._empty()
        (index,) = request["items"]
        entry = self.entries[index]
        if index != self.index:
            self._cool()
        spared = set() if children.none_left() else children.living()
        random_state = server.reseed.before_fork()
        used, start = _processor_seconds(), monotonic_ns()
        pid = self.warm and self.warm.attempt(start + _PATIENCE_NS)
        if self.warm and pid is None:
            self._cool(index)
        is_warm, can_warm = pid is not None, pid is None and self._can_warm(request, index)
        pid = server.fork() if pid is None else pid
        if pid == 0:
            return self._become(entry, random_state, not request.get("untraced"), can_warm)
        limits = [int(request[name]) for name in ("case_timeout_ms", "group_timeout_ms") if request.get(name)]
        deadline = start + min(limits) * 1_000_000 if limits else None
        status, memory = children.measured_wait(pid, lambda: deadline)
        is_late = status is None
        if is_late:
            children.kill_and_wait(pid)
        leftover = 0 if children.none_left() else children.kill_leftovers(spared)
        duration = (monotonic_ns() - start) / 1e6
        exit = {"kind": "timed_out", "scope": "case", "index": index} if is_late else children.exit_of(status)
        used = _processor_seconds() - used
        answer, modules = self._answer((index, entry), exit, pid, duration)
        if is_warm and self.expected not in (None, shown(answer)):
            self._cool(index)
            server.channel.send("again")
            return None
        self.expected = None
        if can_warm:
            attempt = self._warm(index, modules, shown(answer))
            if attempt is not None:
                return attempt
        server.channel.send(
            "group_done",
            **answer,
            leftover=leftover,
            duration_ms=round(duration, 3),
            processor_ms=round(used * 1000, 3),
            memory_bytes=memory,
        )
        return None

    def _empty(self):
        for stream in self.streams:
            lseek(stream, 0, 0)
            ftruncate(stream, 0)

    def _can_warm(self, request, index):
        """Whether modules may be imported ahead of the attempts that follow: nobody watches, and the command is the original."""
        world, server = self.server.hello.get("world") or {}, self.server
        watched = self.probe or world.get("submission") or server.tracer or server.watcher or server.opened
        return not watched and index not in self.cold and request.get("repeat", 1) > 1

    def _warm(self, index, modules, expected):
        """Make the warm process of an entry, where its first attempt said what it imported. Returns, in an attempt that is
        a fork of that process, what its process is to do."""
        if modules is None:
            return self._cool(index)
        state = self.server.reseed.before_fork()
        made, attempt = warm.Warm.fork(self.server, lambda link: self._become_warm(index, modules, state, link))
        if made is None:
            return attempt
        self.index, self.warm, self.expected = index, made, expected
        if made.answer(monotonic_ns() + _PATIENCE_NS) is None:
            self._cool(index)
        return None

    def _cool(self, index=None):
        """End the warm process; of the entry `index` there will be no other."""
        if self.warm is not None:
            self.warm.end()
        self.index = self.warm = self.expected = None
        if index is not None:
            self.cold.add(index)

    def _answer(self, what, exit, pid, duration):
        """What an attempt showed, in the words of the protocol, and the modules that it imported, where it was asked for them."""
        report, raw_output, modules = self.report.text(), "", None
        code = exit.get("code")
        if code == EXIT_INTERNAL_ERROR and report and '["internal"' in report:
            pass
        elif code is None:
            raw_output = "".join(_read(stream, self.limit)[0] for stream in self.streams)
        elif report is not None:
            lines = report.split("\n")
            modules = warm.modules_of(lines)
            # What it says of itself is what was seen of it, and never how it ended.
            report = "".join(line + "\n" for line in lines if line.startswith(_SAID))
            case = self._case(what, code, pid, duration)
            for kind, value in (("case", case), ("end", {"pytest_exit": 0, "pytest_error": None})):
                report += encode([kind, value]).decode("ascii") + "\n"
            exit = {"kind": "exited", "code": 0}
        return {"report": report, "exit": exit, "raw_output": clean(raw_output)[0]}, modules

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

    def _become_warm(self, index, modules, random_state, link):
        """The warm process. Returns in its forks, which are attempts, as `_become` does."""
        server, entry, process = self.server, self.entries[index], os.getpid()
        try:
            self._leave_server(random_state)
            self._empty()
            hide(entry)
            go = command.surround(entry, self.root)
            if not warm.import_ahead(modules, self.root):
                _exit(EXIT_INTERNAL_ERROR)
            random_state = warm.serve(link, server.reseed, self.place)
            os.close(link)
            return self._become(entry, random_state, False, go=go)
        except BaseException:
            if os.getpid() != process:
                self.report.append("internal", traceback.format_exc())
            _exit(EXIT_INTERNAL_ERROR)

    def _leave_server(self, random_state):
        children.die_with_parent()
        self.server.signals.restore()
        self.server.reseed.after_fork(random_state)
        self.server.channel.close()
        hide_memory(False)
        for number, stream in enumerate(self.streams, 1):
            os.dup2(stream, number)

    def _become(self, entry, random_state, is_traced, says_modules=False, go=None):
        """Make ready for the command; `go` runs it where this is a fork of the warm process. Returns what runs it, once
        nothing of the runner is below it any more."""
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
            if go is None:
                self._leave_server(random_state)
            else:
                children.die_with_parent()
                server.reseed.after_fork(random_state)
                hide_memory(False)
            become_expendable()
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
            if says_modules:
                self.report.append("modules", warm.imported(self.known, self.root))

        def starts():
            if tracer is not None and tracer.kind == "trace":
                self.followed = followed.Children(tracer.files.root)
            if go is None:
                hide(entry)
            self.known = set(sys.modules)
            if tracer is not None:
                tracer.start_group()

        if tracer is not None:
            from . import followed

        def run():
            guarded(starts)
            return command.run(entry, self.root, self.probe, lambda: guarded(ended), go)

        return run


def shown(answer):
    """What of an answer has to be the same again, as a text."""
    lines = [loads(line.encode("ascii")) for line in (answer["report"] or "").splitlines()]
    for _, value in lines:
        if isinstance(value, dict):
            value.pop("duration_ms", None)
            value.pop("process_ids", None)
    return encode([lines, answer["exit"], answer["raw_output"]])


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
