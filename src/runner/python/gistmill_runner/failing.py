"""Makes one function fail whenever it is called: a test that passes all the same does not test anything."""

import sys
import threading


class Failing:
    """A function by its file and the line where its definition begins, decorators included."""

    def __init__(self, file, line):
        self.file = file
        self.line = line

    def start(self, config, started=()):
        """From now on it raises before its first statement, in this process and its forks.

        Args:
            config: pytest's. Nobody reads what is said about the failure, so pytest has to say little.
            started: Code objects of the file that may contain its own. Without it there all functions are looked at.
        """
        config.option.tbstyle = "native"
        if hasattr(sys, "monitoring"):
            self._start_monitoring([code for code in _with_inner(started) if self.is_it(code)])
        else:
            self._start_tracing()

    def is_it(self, code):
        """Whether this is its code."""
        return code.co_firstlineno == self.line and code.co_filename == self.file and not code.co_name.startswith("<")

    def check(self, code):
        """Raise if it is this code that starts."""
        if self.is_it(code):
            raise AssertionError("gistmill")

    def _start_monitoring(self, codes):
        """Python 3.12 and newer."""
        monitoring, check = sys.monitoring, self.check
        # Not the tool of `execution`: places where that one asked not to be told again would stay silent.
        tool = next(tool for tool in (3, 2, 1, 0, 5, 4) if monitoring.get_tool(tool) is None)
        monitoring.use_tool_id(tool, "gistmill")

        def starts(code, offset):
            check(code)
            return monitoring.DISABLE

        event = monitoring.events.PY_START
        monitoring.register_callback(tool, event, starts)
        if codes:
            for code in codes:
                monitoring.set_local_events(tool, code, event)
        else:
            monitoring.set_events(tool, event)
            monitoring.restart_events()

    def _start_tracing(self):
        """Python 3.8 to 3.11."""

        def trace(frame, event, argument):
            self.check(frame.f_code)

        threading.settrace(trace)
        sys.settrace(trace)


def _with_inner(codes):
    """These code objects and all that are defined in them."""
    waiting, seen = list(codes), set()
    while waiting:
        code = waiting.pop()
        if id(code) not in seen:
            seen.add(id(code))
            yield code
            waiting.extend(inner for inner in code.co_consts if isinstance(inner, type(code)))
