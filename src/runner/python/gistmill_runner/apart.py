"""Files whose forks would lack something: threads, or child processes, that importing them or their conftests starts.

Of such a file no process forks that has run code of the repository. The directory and the file process stay as the interpreter
made them: a fork of the file process collects, answers, and ends with all that it started; each group configures pytest,
collects, and runs, in one process.
"""

import os
import signal

from . import children, collect
from .group_run import GroupRunner
from .isolate import hide_memory
from .stages import Stages, configure, watch_calls

# How the process that collects ends once it has answered.
_ANSWERED = 97
# pytest's exit code for an argument that names no test.
_NOTHING_TO_RUN = 4


def directory(server, request):
    """The directory process, then in its fork the file process, then in its forks the group processes."""
    server.ready()
    server.channel.send("directory_ready")
    opened = server.serve({})
    server.ready()
    _collect(server, request, opened)
    runner = GroupRunner(server)
    server.serve({"run": runner.run})
    server.guarded = runner.guard
    watch_calls(server, request)
    configure(Apart(server, request, opened, runner), request, opened["file"])


def _collect(server, request, opened):
    """Have a fork collect the file and answer; end as it ended when it did not."""
    signals = children.SignalState()
    random_state = server.reseed.before_fork()
    pid = server.fork()
    if pid == 0:
        children.die_with_parent()
        signals.restore()
        server.reseed.after_fork(random_state)
        hide_memory(False)
        watch_calls(server, request)
        configure(Apart(server, request, opened), request, opened["file"])
    status = children.wait(pid, lambda: None, may_stop=False)
    if not children.none_left():
        children.kill_leftovers(set())
    signals.restore()
    exit = children.exit_of(status)
    if exit == {"kind": "exited", "code": _ANSWERED}:
        return
    if exit["kind"] == "exited":
        os._exit(exit["code"])
    if exit["signal"] not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(exit["signal"], signal.SIG_DFL)
    os.kill(os.getpid(), exit["signal"])


class Apart(Stages):
    """One run of pytest from its configuration on: to the collected file, or, with a `runner`, to the end of a group."""

    def __init__(self, server, request, opened, runner=None):
        super().__init__(server, request)
        self.opened = opened
        self.runner = runner

    def next_file(self):
        return self.opened

    def serve_file(self, session, config, items):
        described = self.collected_file(items)
        if self.runner is None:
            self.server.channel.send("file_ready", **described)
            os._exit(_ANSWERED)
        if self.runner.chosen[-1:] > [len(items) - 1]:
            text = "\n".join(["collected again, its file does not have this test"] + [one["text"] for one in self.errors])
            self.runner.finish(_NOTHING_TO_RUN, collect.failure(None, text))
        self.give_to(self.runner, config, items)
        return self.runner

    def fail(self, stage, code, failure):
        if self.runner is None:
            super().fail(stage, code, failure)
        self.runner.finish(code, failure or self.failure)
