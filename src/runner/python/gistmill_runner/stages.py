"""The plugin that stops pytest's own run at the points where the process forks, and lets the forks go on.

Nothing of pytest is reimplemented: a directory process waits where collection would begin, a file process where the
collected items would be modified and sorted, and a group process goes through the rest as pytest does, with the items
of its group. What hooks and plugins do therefore happens in the order of the entry command.
"""

import gc
import importlib
import importlib.util
import io
import os
import pathlib
import sys
import time

import pytest
import _pytest.config as pytest_config

from . import children, collect, interpreter, old_pytest
from .group_run import GroupRunner
from .probe import Probe
from .protocol import printable
from .watch import FileWatcher, ImportWatcher

_FIRST_WITH_VERSION_VARIABLE = (8, 2)
# Options that name a place from where pytest is started: what is written there is part of no test.
_PLACES = ("basetemp", "xmlpath", "htmlpath", "log_file", "report_log", "json_report_file", "allure_report_dir")
# What a thread has to begin.
_STARTS_SECONDS = 0.02
_listdir, _current_frames, _sleep = os.listdir, sys._current_frames, time.sleep


def directory(server, request):
    """The directory process: configure pytest for the first file, then serve; file and group processes come of it."""
    watch_calls(server, request)
    configure(Stages(server, request), request, request["file"])


def watch_calls(server, request):
    """Begin to count calls, if that is asked for."""
    if request.get("trace", "off") == "lines":
        from .execution import Execution

        server.tracer = server.guarded(Execution, os.getcwd())
    elif request.get("trace", "off") != "off":
        from . import followed  # noqa: F401 (here, so that no group has to)
        from .tracer import Tracer

        server.tracer = server.guarded(Tracer, os.getcwd(), request["trace"])
    else:
        import_codec_of_host_names()


def configure(plugin, request, file):
    """Have pytest configure itself for a file, and go on as `plugin` says; does not return."""
    interpreter.set_arguments([file])
    # Absolute, because the working directory may be another by the time that pytest looks for conftest files.
    file = os.path.abspath(file) if plugin.elsewhere else file
    code, failure = run_pytest(list(request.get("options", ())) + [file], plugin)
    plugin.ended(code, failure)


def import_codec_of_host_names():
    """Import what Python imports when a host name is first encoded: most tests that do anything with a network would pay
    for it, each for itself. Not where calls are counted, nor where the root of the tree has one of the modules that it
    needs, which a test would get."""
    try:
        here = os.path.dirname(os.__file__)
        if all(is_below(here, importlib.util.find_spec(name)) for name in ("stringprep", "unicodedata")):
            import encodings.idna  # noqa: F401
    except Exception:
        pass  # a test that needs it meets that itself


def is_below(folder, specification):
    """Whether a module lies in a folder, or is part of the interpreter."""
    origin = specification.origin
    return origin == "built-in" or os.path.commonpath([folder, origin]) == folder


def forget_hypothesis(manager):
    """Take the plugin of hypothesis away at the end of a session that did not import hypothesis.

    It sums up what hypothesis did, and imports all of it to see that this was nothing: that takes ten times as long as an
    attempt.
    """
    plugin = sys.modules.get("_hypothesis_pytestplugin")
    if plugin is not None and "hypothesis" not in sys.modules and manager.is_registered(plugin):
        manager.unregister(plugin)


def run_pytest(arguments, plugin):
    """What ``pytest.main`` does. Returns the exit code and, when configuration failed, why."""
    interpreter.forget_own_modules()
    if old_pytest.VERSION >= _FIRST_WITH_VERSION_VARIABLE:
        os.environ["PYTEST_VERSION"] = pytest.__version__
    try:
        config = pytest_config._prepareconfig(arguments, [plugin])
        return int(config.hook.pytest_cmdline_main(config=config)), None
    except pytest_config.ConftestImportFailure as failure:
        cause = getattr(failure, "cause", None) or failure.excinfo[1]
        return 4, collect.failure(cause, conftest_failure_text(failure, cause))
    except pytest.UsageError as error:
        return 4, collect.failure(error, "\n".join("ERROR: %s" % message for message in error.args))
    except BaseException as error:
        return 1, collect.failure(error, traceback_text(error))


def conftest_failure_text(failure, cause):
    """What pytest says about a conftest that cannot be imported."""
    print_error = getattr(pytest_config, "print_conftest_import_error", None)
    if print_error is None:
        return "ImportError while loading conftest '%s'.\n%s" % (failure.path, traceback_text(cause))
    text = io.StringIO()
    print_error(failure, text)
    return text.getvalue()


def traceback_text(error):
    """An exception with its traceback, as Python prints it."""
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


class Silent:
    """A file for the terminal reporter: what pytest itself prints is no observation."""

    encoding = "utf-8"

    def write(self, text):
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class Collecting:
    """What discovery and the directory stages share: collection errors with their exceptions, and failures of pytest."""

    def __init__(self, server, request):
        self.server = server
        self.errors = []
        self.failure = None
        self.describer = None
        self.session = None
        self.collected = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session):
        self.session = session
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter._tw._file = Silent()
        self.describer = collect.Describer()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector):
        outcome = yield
        if outcome.excinfo is None:
            self.note_error(collector, outcome.get_result())

    def note_error(self, collector, report):
        """Keep a report that failed or was skipped whole. Gives what is kept, or None."""
        if report.passed:
            return None
        excinfo = getattr(getattr(report, "call", None), "excinfo", None)
        exception = None if excinfo is None else collect.cause_of(excinfo.value)
        described = self.server.guarded(self.describer.error, report, exception)
        described["file"] = printable(self.describer.file(collector))
        self.errors.append(described)
        return described

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report):
        # The entry command names one group: an error elsewhere must not stop the collection of the rest.
        if self.session.shouldfail:
            for name in ("_shouldfail", "shouldfail"):
                if name in vars(self.session):
                    setattr(self.session, name, False)

    def pytest_internalerror(self, excrepr, excinfo):
        self.failure = collect.failure(excinfo.value, str(excrepr))

    def pytest_keyboard_interrupt(self, excinfo):
        self.failure = collect.failure(excinfo.value, "%s: %s" % (excinfo.typename, excinfo.value))

    def fail(self, stage, code, failure):
        """Answer that pytest did not get far enough, and exit."""
        failure = failure or self.failure or collect.failure(None, "pytest ended with exit code %s" % code)
        self.server.channel.send("failed", stage=stage, error=failure)
        self.server.finish()


def has_company():
    """Whether this process has threads of Python, or child processes. Threads of libraries alone mind forks themselves."""
    if not children.none_left():
        return True
    if len(_listdir("/proc/self/task")) == 1:
        return False
    if len(_current_frames()) == 1:
        _sleep(_STARTS_SECONDS)  # a thread that has just been started has no frame yet
    return len(_current_frames()) > 1


def preload(name):
    """Import a module that files of the directory are going to import; what it raises is for them to meet."""
    try:
        importlib.import_module(name)
    except BaseException:
        pass


class Stages(Collecting):
    """The directory process, then in its fork the file process, then in its forks the group processes."""

    def __init__(self, server, request):
        super().__init__(server, request)
        self.stage = "configure"
        self.file = None
        self.group = None
        self.way = None
        self.root = os.getcwd()
        world = server.hello.get("world") or {}
        self.elsewhere = world.get("elsewhere")
        self.preloaded = request.get("preload", ())
        self.probe = Probe(self.root, world["probe"]) if world.get("probe") else None
        self.hidden = world.get("hidden", False)
        self.notes_files = world.get("notes_files", False)
        if world.get("watched"):
            server.watcher = ImportWatcher(world["watched"])

    def pytest_plugin_registered(self, plugin, manager):
        if plugin is self and self.hidden:
            self.server.watcher.hide_from(manager)

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self):
        # Where pytest itself lies and reads its configuration is settled; what follows is code of the repository.
        if self.elsewhere:
            os.chdir(self.elsewhere)
        if self.notes_files:
            self.server.opened = FileWatcher(self.root)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        for name in _PLACES if self.elsewhere else ():
            place = getattr(config.option, name, None)
            if place and isinstance(place, str):
                setattr(config.option, name, os.path.join(self.root, place))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session):
        super().pytest_sessionstart(session)
        if self.probe is not None or self.elsewhere:
            self.describer = collect.Describer(self.root, self.probe)

    if old_pytest.HAS_PATHS:

        @pytest.hookimpl(tryfirst=True)
        def pytest_ignore_collect(self, collection_path):
            # Since version 8 pytest makes a collector for everything in the directory of the one file that it is asked
            # for, and throws all others away. This costs more than the file itself.
            if self.way is None or collection_path in self.way or collection_path.name == "__init__.py":
                return None
            return True

        @pytest.hookimpl(tryfirst=True)
        def pytest_pycollect_makemodule(self, module_path, parent):
            return None if self.probe is None else self.probe.collector(parent, module_path)

    else:

        @pytest.hookimpl(tryfirst=True)
        def pytest_pycollect_makemodule(self, path, parent):
            return None if self.probe is None else self.probe.collector(parent, path)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self, session):
        self.server.guarded(self.serve_directory, session)
        yield

    def serve_directory(self, session):
        """Answer `open_file` requests; returns in the fork that is to collect a file."""
        self.stage = "collect"
        for name in self.preloaded:
            preload(name)
        request = self.next_file()
        self.file = request["file"]
        self.server.guarded(self.prepare_file, request.get("text"))
        self.address(session.config, self.file)
        target = pathlib.Path(self.root, self.file)
        self.way = {target, *target.parents}
        if self.probe is not None:
            self.server.guarded(self.probe.stand_in_for, session.config, self.file)

    def next_file(self):
        """The file that this process is to collect."""
        self.refuse_company()
        self.server.ready()
        self.server.channel.send("directory_ready")
        gc.collect()
        return self.server.serve({})

    def refuse_company(self):
        """Ask the keeper for `apart`, and wait to be ended, where the forks of this process would lack part of it."""
        if has_company():
            self.server.channel.send("apart")
            self.server.finish()

    def prepare_file(self, text):
        """Put the text that the driver gave in the place of the file."""
        if text is not None:
            with open(os.path.join(self.root, self.file), "w", encoding="utf-8", newline="") as file:
                file.write(text)

    def address(self, config, argument):
        """Make pytest and Python believe that `argument` was on the command line."""
        interpreter.set_arguments([argument])
        parameters = config.invocation_params
        config.invocation_params = type(parameters)(args=(argument,), plugins=None, dir=parameters.dir)
        config.args = [argument]
        config.option.file_or_dir = [argument]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, session, config, items):
        runner = self.server.guarded(self.serve_file, session, config, items)
        self.group = runner
        runner.enter(session, config, items, self)
        yield

    def serve_file(self, session, config, items):
        """Answer `run` requests; returns in the fork that is to run a group."""
        server = self.server
        self.refuse_company()
        server.ready()
        server.channel.send("file_ready", **self.collected_file(items))
        # Into the oldest generation with all that the import made, without a walk over it: a young collection in a
        # group should not touch it.
        gc.freeze()
        gc.unfreeze()
        runner = GroupRunner(server)
        self.give_to(runner, config, items)
        # What a group lets go of, it writes to, and copies the memory that it lies in. So the list is emptied here, and
        # what pytest forgets after the collection stays known.
        items.clear()
        self.collected = vars(session).get("_collection_cache")
        server.serve({"run": runner.run})
        return runner

    def give_to(self, runner, config, items):
        """Have a runner know what was collected."""
        file = os.path.join(self.root, self.file if self.probe is None else self.probe.name)
        runner.take(config, list(items), self.describer, file, self.probe)

    def collected_file(self, items):
        """What the driver is told about the file."""
        server = self.server
        if self.probe is not None:
            self.probe.check()
        return {
            **({"import": server.tracer.import_summary()} if server.tracer else {}),
            "items": [self.describer.item(index, item) for index, item in enumerate(items)],
            "errors": self.errors,
            **({"import_attempts": server.watcher.taken()} if server.watcher else {}),
            **({"opened": server.opened.taken()} if server.opened else {}),
        }

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session):
        self.group.loop_starts()
        yield
        self.group.loop_ended()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.group.case_starts(item)
        outcome = yield
        if outcome.excinfo is None:  # otherwise pytest was told to stop in the middle of the case
            self.group.case_ended(item)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None:
            self.group.raised(call)
        outcome = yield
        if outcome.excinfo is None and outcome.get_result().outcome == "failed":
            self.group.again.failed(outcome.get_result(), call)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_pyfunc_call(self):
        outcome = yield
        self.group.again.called(outcome.excinfo)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        self.group.reported(report)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        cache = getattr(session.config, "cache", None)
        if self.group is not None:
            if cache is not None:
                cache.set = lambda key, value: None  # the next run that could read it will not see this one's files
            forget_hypothesis(session.config.pluginmanager)
        outcome = yield
        # What would follow (pytest unconfigures itself, Python finalizes) can no longer change an observation, and
        # costs several full garbage collections.
        if self.group is not None and outcome.excinfo is None:
            self.group.finish(int(session.exitstatus), self.failure)

    def ended(self, code, failure):
        """pytest has returned: from a group, or too early from a directory or a file."""
        if self.group is not None:
            self.group.finish(code, failure or self.failure)
        self.fail(self.stage, code, failure)
