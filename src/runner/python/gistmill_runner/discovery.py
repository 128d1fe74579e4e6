"""Collecting a whole suite in one process, although any file of it may end that process, or never come back.

Before a file is imported the process notes it in shared memory. Now and then it forks and lets the fork go on: when
that dies or hangs, the one that waited knows the file at fault, notes why, and collects on from where it stood, without
that file. So a file at fault costs its limit and a few seconds of collecting again, however large the suite is.

A file at fault, and every file below a conftest at fault, becomes an error of that file. What happens between files
(hooks of plugins, the conftests that pytest loads before it collects) is nobody's but the repository's.
"""

import os
import types
from os import listdir
from time import monotonic

import pytest
from _pytest.config import ConftestImportFailure
from _pytest.reports import CollectReport

from . import children, collect, disruptive, interpreter
from .protocol import printable
from .stages import Collecting, conftest_failure_text, run_pytest, traceback_text

# Seconds of collecting that are at most done again for a file at fault, at the beginning; later a share of all so far.
_SHORTEST_STRETCH = 2.0
_SHARE_OF_ALL = 4
# How often a process is killed before the file that it imports counts as the reason: the kernel and people kill, too.
_KILLS_BELIEVED = 3
_SIGKILL = 9


def discover(server, request):
    """The discovery process: collect everything once and answer."""
    arguments = list(request.get("args", ()))
    interpreter.set_arguments(arguments)
    plugin = Discovery(server, request)
    code, failure = run_pytest(list(request.get("options", ())) + arguments, plugin)
    plugin.ended(code, failure)


class Discovery(Collecting):
    """Collects once, describes, exits."""

    def __init__(self, server, request):
        super().__init__(server, request)
        self.stage = "configure"
        self.deselected = 0
        self.here = os.getcwd()
        self.at_fault = {one["place"]: dict(one) for one in request.get("known", ())}
        self.conftests = {}
        self.kills = {}
        timeout = request.get("timeout_ms")
        self.limit_ns = None if timeout is None else int(timeout) * 1_000_000
        self.begun = self.forked = self.told = monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        disruptive.collect_in_this_process(config)

    def pytest_deselected(self, items):
        self.deselected += len(items)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self, session):
        self.stage = "collect"
        self.server.place.begins("")
        self._watch_conftests(session.config.pluginmanager)
        self._go_on_in_a_fork()
        outcome = yield
        if outcome.excinfo is None:
            self.server.guarded(self.answer, session)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector):
        file = self._file_of(collector)
        if file is None:
            outcome = yield
            if outcome.excinfo is None:
                self.note_error(collector, outcome.get_result())
            return
        self._begins(file)
        fault = self.at_fault.get(file) or self._conftest_at_fault(file)
        if fault is not None:
            collector.collect = _refusal(collector, fault)
        outcome = yield
        self.server.place.begins("")
        if outcome.excinfo is not None:
            # Of `sys.exit` and the like pytest itself would end.
            text = "importing %s leaves by\n%s" % (file, traceback_text(_from_file(outcome.excinfo[1], collector)))
            outcome.force_result(CollectReport(collector.nodeid, "failed", text, []))
        described = self.note_error(collector, outcome.get_result())
        if described is not None and fault is not None:
            described.update({key: fault[key] for key in ("kind", "exception", "missing_module") if key in fault})

    def _file_of(self, collector):
        """The file that a collector imports, or belongs to; None for the session and for folders."""
        while collector is not None:
            if isinstance(collector, pytest.File) and not isinstance(collector, pytest.Package):
                return self.describer.file(collector)
            collector = collector.parent
        return None

    def _begins(self, place):
        """`place` is about to be imported."""
        now = monotonic()
        if now - self.told > 1:
            self.told = now
            self.server.channel.send("collecting", file=printable(place))
        if now - self.forked > max(_SHORTEST_STRETCH, (now - self.begun) / _SHARE_OF_ALL):
            self._go_on_in_a_fork()
        self.server.place.begins(place)

    # Conftests that pytest finds while it collects.

    def _watch_conftests(self, manager):
        load = getattr(manager, "_importconftest", None)
        if load is None:
            return

        def load_or_note(conftestpath, *arguments, **options):
            place = os.path.relpath(str(conftestpath), self.here)
            if place not in self.conftests:
                self._begins(place)
                try:
                    self.conftests[place] = None if place in self.at_fault else load(conftestpath, *arguments, **options)
                except BaseException as error:
                    self.at_fault[place] = _fault_of(error)
                    self.conftests[place] = None
                finally:
                    self.server.place.begins("")
            return self.conftests[place] or _Empty(place)

        manager._importconftest = load_or_note

    def _conftest_at_fault(self, file):
        """Why a conftest above `file` could not be loaded."""
        for place in self.conftests:
            folder = os.path.dirname(place)
            if place in self.at_fault and (not folder or file.startswith(folder + os.sep)):
                return self.at_fault[place]
        return None

    # Forks that go on.

    def _go_on_in_a_fork(self):
        """Return in a fork; wait for it here, and return here as well, knowing more, when it comes to a bad end."""
        server = self.server
        if len(listdir("/proc/self/task")) > 1 or not children.none_left():
            return  # neither threads nor children of this process would be the fork's
        children.adopt_orphans()
        signals = children.SignalState()
        while True:
            server.place.begins("")
            random_state = server.reseed.before_fork()
            pid = server.fork()
            if pid == 0:
                children.die_with_parent()
                signals.restore()
                server.reseed.after_fork(random_state)
                self.forked = monotonic()
                return
            limit = self.limit_ns
            status = children.wait(pid, lambda: None if limit is None else server.place.deadline(limit), may_stop=False)
            late = status is None
            if late:
                children.kill_and_wait(pid)
            if not children.none_left():
                children.kill_leftovers(set())
            server.guarded(self._blame, None if late else children.exit_of(status))

    def _blame(self, exit):
        """The fork ended without an answer, or (None) did not come back."""
        place = self.server.place.path()
        if exit is None:
            text = "takes longer than the limit of %g s" % (self.limit_ns / 1e9)
        else:
            text = "ends the process: " + ("exit code %(code)s" if "code" in exit else "signal %(signal)s") % exit
        if exit == {"kind": "signaled", "signal": _SIGKILL}:
            self.kills[place] = self.kills.get(place, 0) + 1
            if self.kills[place] < _KILLS_BELIEVED:
                return
        if not place:
            self.fail(self.stage, None, collect.failure(None, "what runs between the files %s" % text))
        text = "importing %s %s" % (printable(place), text)
        self.at_fault[place] = {"place": place, "kind": "timed_out" if exit is None else "error", "text": text}

    def answer(self, session):
        """Send what was collected."""
        self.server.channel.send(
            "discovered",
            items=[self.describer.item(index, item) for index, item in enumerate(session.items)],
            errors=self.errors,
            at_fault=[one for one in self.at_fault.values() if "place" in one],
            deselected=self.deselected,
            switched_off=disruptive.switched_off(session.config),
        )
        self.server.finish()

    def ended(self, code, failure):
        """pytest has returned without a discovery."""
        self.fail(self.stage, code, failure)


class _Empty(types.ModuleType):
    """Stands in for a conftest that could not be loaded."""


def _from_file(error, collector):
    """The exception with the part of its traceback that begins in the collector's file."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != str(getattr(collector, "path", None) or collector.fspath):
        frame = frame.tb_next
    return error if frame is None else error.with_traceback(frame)


def _refusal(collector, fault):
    def collect():
        raise collector.CollectError(fault["text"])

    return collect


def _fault_of(error):
    """What loading a conftest raised."""
    if isinstance(error, ConftestImportFailure):
        cause = getattr(error, "cause", None) or error.excinfo[1]
        text = conftest_failure_text(error, cause)
    else:
        cause, text = error, traceback_text(error)
    return {
        "kind": "error",
        "text": text,
        "exception": collect.qualified_name(type(cause)),
        "missing_module": collect.missing_module(cause),
    }
