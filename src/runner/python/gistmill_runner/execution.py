"""What of the tree ran, line by line in the order of first execution, imports included: what a witness is made from.

Unlike `tracer`, which counts, every line and function is seen once and costs nothing afterwards. All that ran since the
directory process began belongs to a group, because a witness has to repeat it.
"""

import os
import sys
import threading
from itertools import count

from .tree_files import TreeFiles

# What pytest itself reads, beside its cache in a hidden folder.
with open(os.path.join(os.path.dirname(__file__), "pytest_settings.txt"), encoding="ascii") as _file:
    _CONFIGURATION = frozenset(_file.read().split())
# How much of what a group opens and starts is kept.
_MOST = 100


class Execution:
    """Watches this process and its forks from now on."""

    kind = "execution"

    def __init__(self, root):
        self.known = set(sys.modules)
        self.files = TreeFiles(root)
        self.lines = {}
        self.started = {}
        self.opened = {}
        self.spawned = []
        self.order = count()
        sys.addaudithook(self._audit)
        self.engine = (_Monitoring if hasattr(sys, "monitoring") else _Tracing)(self)

    def line_runs(self, file, line):
        """A line of a file of the tree runs."""
        lines = self.lines.setdefault(file, {})
        if line not in lines:
            lines[line] = next(self.order)

    def function_starts(self, file, code):
        """A function, or a module or class body, of the tree starts."""
        self.started.setdefault(file, {})[(code.co_firstlineno, code.co_name)] = None

    def _audit(self, event, arguments):
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            name = os.fsdecode(arguments[0])
            if len(self.opened) < _MOST and not name.endswith(".py") and "__pycache__" not in name:
                try:
                    file = self.files.inside(os.path.abspath(name))
                except OSError:
                    return
                if file is None or file in _CONFIGURATION:
                    return
                if not any(part.startswith(".") for part in file.split("/")[:-1]):
                    self.opened[file] = None
        elif event == "subprocess.Popen" and len(self.spawned) < _MOST:
            self.spawned.append(str(arguments[0]))

    def import_summary(self):
        """Nothing: what was imported is part of what a group needs."""

    def start_group(self):
        """Nothing: see `import_summary`."""

    def stop(self):
        """Leave this process as if nobody had watched it."""
        self.engine.stop()

    def codes(self):
        """Code objects of the tree that started, where they are known."""
        return self.engine.watched

    def group_summary(self):
        """All that ran, by file, with the modules that were imported."""
        modules, others = {}, []
        for name, module in list(sys.modules.items()):
            try:
                file = getattr(module, "__file__", None)
            except Exception:  # What a test puts there can be anything: a weak reference to what is gone.
                file = None
            file = self.files[file] if isinstance(file, str) else None
            if file is not None:
                modules[name] = file
            elif name not in self.known:
                others.append(name)
        return {
            "files": {
                file: {
                    "lines": sorted(self.lines.get(file, {}).items()),
                    "started": sorted(self.started.get(file, {})),
                }
                for file in sorted(set(self.lines) | set(self.started))
            },
            "modules": modules,
            "others": others,
            "opened": sorted(self.opened),
            "spawned": self.spawned,
            "complete": self.engine.is_active(),
        }


class _Monitoring:
    """Python 3.12 and newer."""

    def __init__(self, execution):
        self.monitoring = monitoring = sys.monitoring
        self.tool = tool = next(tool for tool in (4, 3, 2, 1, 0, 5) if monitoring.get_tool(tool) is None)
        self.watched = watched = []
        events, disable = monitoring.events, monitoring.DISABLE
        monitoring.use_tool_id(tool, "gistmill")

        def starts(code, offset):
            file = execution.files[code.co_filename]
            if file is not None:
                execution.function_starts(file, code)
                watched.append(code)
                monitoring.set_local_events(tool, code, events.LINE)
            return disable

        def runs(code, line):
            execution.line_runs(execution.files[code.co_filename], line)
            return disable

        monitoring.register_callback(tool, events.PY_START, starts)
        monitoring.register_callback(tool, events.LINE, runs)
        monitoring.set_events(tool, events.PY_START)

    def stop(self):
        monitoring, tool = self.monitoring, self.tool
        monitoring.set_events(tool, 0)
        for code in self.watched:
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, monitoring.events.PY_START, None)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)

    def is_active(self):
        return self.monitoring.get_tool(self.tool) == "gistmill"


class _Tracing:
    """Python 3.8 to 3.11."""

    watched = ()

    def __init__(self, execution):
        def trace(frame, event, argument):
            file = execution.files[frame.f_code.co_filename] if event == "call" else None
            if file is None:
                return None
            execution.function_starts(file, frame.f_code)

            def trace_lines(frame, event, argument):
                if event == "line":
                    execution.line_runs(file, frame.f_lineno)
                return trace_lines

            return trace_lines

        self.trace = trace
        threading.settrace(trace)
        sys.settrace(trace)

    def stop(self):
        sys.settrace(None)
        threading.settrace(None)

    def is_active(self):
        return sys.gettrace() is self.trace
