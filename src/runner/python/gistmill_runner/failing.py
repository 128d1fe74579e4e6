"""Makes one function fail whenever it is called: a test that passes all the same does not test anything."""

import sys
import threading


class Failing:
    """A function by its file and the line where its definition begins, decorators included."""

    def __init__(self, file, line):
        self.file = file
        self.line = line

    def start(self):
        """From now on it raises before its first statement, in this process and its forks."""
        (self._start_monitoring if hasattr(sys, "monitoring") else self._start_tracing)()

    def check(self, code):
        """Raise if it is this code that starts."""
        if code.co_firstlineno == self.line and code.co_filename == self.file and not code.co_name.startswith("<"):
            raise AssertionError("gistmill")

    def _start_monitoring(self):
        """Python 3.12 and newer."""
        monitoring, check = sys.monitoring, self.check
        tool = next(tool for tool in (4, 3, 2, 1, 0, 5) if monitoring.get_tool(tool) is None)
        monitoring.use_tool_id(tool, "gistmill")

        def starts(code, offset):
            check(code)
            return monitoring.DISABLE

        monitoring.register_callback(tool, monitoring.events.PY_START, starts)
        monitoring.set_events(tool, monitoring.events.PY_START)
        monitoring.restart_events()

    def _start_tracing(self):
        """Python 3.8 to 3.11."""

        def trace(frame, event, argument):
            self.check(frame.f_code)

        threading.settrace(trace)
        sys.settrace(trace)
