"""Group attempts: forking them, watching them, and writing down inside them what happened."""

import hashlib
import sys
import traceback
from resource import RUSAGE_CHILDREN, getrusage
from os import _exit, close, fstat, ftruncate, getpid, lseek, pread, setsid
from time import monotonic_ns, perf_counter_ns

from . import between, children, network
from .again import Again, type_of
from .collect import qualified_name, tail
from .execution import Execution
from .failing import Failing
from .isolate import become_expendable, hide_memory
from .late import LateWrites
from .phases import Phases
from .protocol import clean
from .server import EXIT_INTERNAL_ERROR
from .shared import GroupReport

_sha256 = hashlib.sha256
_getrusage, _RUSAGE_CHILDREN = getrusage, RUSAGE_CHILDREN
_format_exc = traceback.format_exc
_MESSAGE_LIMIT = 4000
_PACKAGE, _HIDDEN = __name__.partition(".")[0], {}
_OUTPUT_LIMIT = 1 << 20


class GroupRunner:
    """Forks one process per attempt; in that process, pytest's hooks lead back here."""

    def __init__(self, server):
        self.server = server
        self.report = GroupReport()
        self.output_limit = ((server.hello or {}).get("limits") or {}).get("output_bytes") or _OUTPUT_LIMIT
        self.captures = []
        self.phases = Phases(server.raw_output)
        self.process = None
        self.tracer = None
        self.failing = None
        self.late_writes = None
        self.followed = None
        self.again = Again()

    def take(self, config, items, describer, file, probe):
        """What pytest has collected."""
        self.config = config
        self.file = file
        self.probe = probe
        self.items = items
        self.describer = describer
        self.captures = _capture_files(config)
        config.pluginmanager.register(self.phases)
        self.index_of = {id(item): index for index, item in enumerate(items)}

    # In the file process.

    def run(self, request):
        """Handle one `run` request: an attempt. Returns True in its process."""
        server, report = self.server, self.report
        report.reset()
        self._empty(server.raw_output)
        for descriptor in self.captures:
            self._empty(descriptor)
        spared = set() if children.none_left() else children.living()
        random_state = server.reseed.before_fork()
        used = _processor_seconds()
        start = monotonic_ns()
        pid = server.fork()
        if pid == 0:
            self.process = getpid()
            self.chosen = sorted(request["items"])
            self.is_traced = not request.get("untraced")
            self.failing = request.get("failing")
            self.late_writes = LateWrites(self.phases.size) if request.get("late_writes") else None
            self.guard(self._become_group, random_state)
            return True

        case_limit = int(request["case_timeout_ms"]) * 1_000_000 if request.get("case_timeout_ms") else None
        group_deadline = start + int(request["group_timeout_ms"]) * 1_000_000 if request.get("group_timeout_ms") else None

        def next_deadline():
            index, started = report.running()
            if case_limit is None or index < 0:
                return group_deadline
            case_deadline = max(started, start) + case_limit
            return case_deadline if group_deadline is None else min(case_deadline, group_deadline)

        status, memory = children.measured_wait(pid, next_deadline)
        late = None
        if status is None:
            index, started = report.running()
            by_case = case_limit is not None and index >= 0 and monotonic_ns() >= max(started, start) + case_limit
            late = {"kind": "timed_out", "scope": "case" if by_case else "group", "index": index if index >= 0 else None}
            children.kill_and_wait(pid)
        leftover = 0 if children.none_left() else children.kill_leftovers(spared)
        duration = (monotonic_ns() - start) / 1e6
        self._answer(late or children.exit_of(status), leftover, duration, _processor_seconds() - used, memory)
        return None

    @staticmethod
    def _empty(descriptor):
        lseek(descriptor, 0, 0)
        ftruncate(descriptor, 0)

    def _answer(self, exit, leftover, duration, used, memory):
        self.server.channel.send(
            "group_done",
            report=self.report.text(),
            exit=exit,
            leftover=leftover,
            raw_output=self._raw_output(),
            duration_ms=round(duration, 3),
            processor_ms=round(used * 1000, 3),
            memory_bytes=memory,
        )

    def _raw_output(self):
        if fstat(self.server.raw_output).st_size == 0:
            return ""
        return pread(self.server.raw_output, self.output_limit, 0).decode("utf-8", "backslashreplace")

    # In the group process.

    def guard(self, function, *arguments):
        """Call a function of the runner; what it raises ends the attempt as the runner's own error."""
        try:
            return function(*arguments)
        except BaseException:
            if getpid() == self.process:
                self.report.append("internal", _format_exc())
            _exit(EXIT_INTERNAL_ERROR)

    def _become_group(self, random_state):
        server = self.server
        setsid()
        children.die_with_parent()
        server.signals.restore()
        server.reseed.after_fork(random_state)
        server.channel.close()
        close(server.raw_output)
        hide_memory(False)
        become_expendable()
        server.go_here()
        self.connections = network.watch()
        self.exceptions = []
        self.reports = []
        self.started = 0

    def enter(self, session, config, items, stages):
        """Put the group in the place of all collected items."""
        self.guard(self._enter, session, config, items, stages)

    def _enter(self, session, config, items, stages):
        self.tracer = self.server.tracer if self.is_traced else None
        items[:] = [self.items[index] for index in self.chosen]
        session.testsfailed = 0
        if items:
            file, classes, function = self.describer.group(items[0])
            if self.probe is not None:
                file = self.probe.name
            stages.address(config, "::".join([file] + classes + [function]))

    def loop_starts(self):
        """The first case is about to start."""
        if self.tracer is not None:
            self.guard(self._start_trace)
        elif self.server.tracer is not None:
            self.guard(self.server.tracer.stop)
        self.hide()
        self.guard(between.route, self.config)
        if self.late_writes is not None:
            self.guard(self.late_writes.start)
        if self.failing is not None:
            started = self.server.tracer.codes() if isinstance(self.server.tracer, Execution) else ()
            self.guard(Failing(self.file, self.failing).start, self.config, started)

    @staticmethod
    def hide():
        """What patches the functions of all modules that it finds, as a fake file system does, must not find the runner's."""
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            _HIDDEN[name] = sys.modules.pop(name)

    def loop_ended(self):
        """The last case is over."""
        sys.modules.update(_HIDDEN)
        if getpid() == self.process:
            self.guard(self._write_watched)
        if self.tracer is not None and getpid() == self.process:
            self.guard(self._write_trace)

    def _write_watched(self):
        for kind, watcher in (("imports", self.server.watcher), ("opened", self.server.opened)):
            seen = watcher.taken() if watcher is not None else None
            if seen:
                self.report.append(kind, seen)

    def _start_trace(self):
        tracer = self.tracer
        if tracer.kind == "trace":
            from .followed import Children

            self.followed = Children(tracer.files.root)
        tracer.start_group()

    def _write_trace(self):
        tracer = self.tracer
        summary = tracer.group_summary()
        if self.followed is not None:
            summary["child_calls"] = self.followed.calls()
        self.report.append(tracer.kind, summary)

    def case_starts(self, item):
        """`item` starts: note it for the file process, which watches the time."""
        if getpid() != self.process:
            return
        self.exceptions.clear()
        self.reports.clear()
        self.again.reset()
        self.started = perf_counter_ns()
        self.report.case_starts(self.index_of.get(id(item), -1), monotonic_ns())

    def raised(self, call):
        """A phase of the running case raised."""
        kind = type_of(call.excinfo)
        if kind is not None:
            self.exceptions.append((call.when, kind))

    def reported(self, report):
        """pytest reports a phase of the running case."""
        self.reports.append(report)

    def case_ended(self, item):
        """`item` is over: write its result."""
        if getpid() == self.process:
            self.guard(self._write_case, item)

    def _write_case(self, item):
        duration = (perf_counter_ns() - self.started) / 1e6
        index = self.index_of.get(id(item), -1)
        outcome, phase, report = outcome_of(self.reports)
        case = {
            "index": index,
            "outcome": outcome,
            "exception": None,
            "message": None,
            "duration_ms": round(duration, 3),
            "process_ids": [self.process],
        }
        if outcome in ("passed", "xpassed") and self.again.is_hidden():
            case.update(self.again.first(_MESSAGE_LIMIT))
        elif outcome != "passed":
            case["message"] = message_of(report)
            if outcome != "skipped":
                for when, kind in self.exceptions:
                    if when == phase:
                        name = qualified_name(kind)
                        case["exception"] = name if self.probe is None else self.probe.original_class(name)
                        break
        sections = self.reports[-1].sections if self.reports else ()
        lossy = False
        for stream in ("stdout", "stderr"):
            text = "".join([content for name, content in sections if name.startswith("Captured " + stream)])
            if stream == "stderr" and self.late_writes is not None:
                text += self.late_writes.left()
            text, lost = clean(text)
            lossy = lossy or lost
            size = len(text) if text.isascii() else len(text.encode("utf-8"))
            if size > self.output_limit:
                data = text.encode("utf-8")
                case["truncated"] = True
                case[stream + "_sha256"] = _sha256(data).hexdigest()
                case[stream + "_bytes"] = size
                text = data[: self.output_limit].decode("utf-8", "ignore")
            case[stream] = text
        if lossy:
            case["lossy"] = True
        if not self.report.append("case", case):
            for stream in ("stdout", "stderr"):
                case.setdefault(stream + "_sha256", _sha256(case[stream].encode("utf-8")).hexdigest())
                case[stream] = ""
            case["truncated"] = True
            self.report.append("case", case)
        self.report.case_starts(-1, 0)

    def finish(self, code, failure):
        """pytest has returned: write the end, and exit without the interpreter's own clean-up."""
        if getpid() != self.process:
            _exit(code)
        self.guard(self._write_end, code, failure)
        _exit(0)

    def _write_end(self, code, failure):
        self.phases.drop()
        if self.connections:
            self.report.append("connections", self.connections)
        self.report.append("end", {"pytest_exit": code, "pytest_error": None if failure is None else failure["text"]})


def _processor_seconds():
    """Processor time of all children that have ended."""
    usage = _getrusage(_RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def outcome_of(reports):
    """(outcome, phase, report) of a case from the reports of its phases; the first failure decides.

    The phase is None for a case that passed, and the report is None when pytest gave none at all.
    """
    for report in reports:
        if report.outcome == "failed":
            return ("failed" if report.when == "call" else "error"), report.when, report
    subtests = [report for report in reports if hasattr(report, "context")]
    for report in subtests:
        # As in the report of a cold run, where a skip of a part is all that is said of the whole.
        if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
            return "skipped", report.when, report
    for report in reports:
        expected = hasattr(report, "wasxfail")
        if report in subtests:
            continue
        if report.outcome == "skipped":
            return ("xfailed" if expected else "skipped"), report.when, report
        if report.outcome == "passed" and report.when == "call":
            return ("xpassed", "call", report) if expected else ("passed", None, report)
    return "error", None, None


def message_of(report):
    """Why a case did not simply pass, as pytest words it."""
    if report is None:
        return "pytest gave no report for this case"
    if isinstance(report.longrepr, tuple):
        text = str(report.longrepr[2])
    else:
        text = report.longreprtext
    reason = getattr(report, "wasxfail", "")
    if reason:
        text = "%s\n%s" % (reason, text) if text else str(reason)
    return tail(text, _MESSAGE_LIMIT)


def _capture_files(config):
    """Descriptors of the files into which pytest captures, which all forks share."""
    found = []
    for stream in between.captures(config):
        try:
            found.append(stream.tmpfile.fileno())
        except (AttributeError, OSError, ValueError):
            pass
    return found
