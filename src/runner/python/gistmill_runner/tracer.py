"""Counts calls of Python functions whose file lies in the tree, and the lines that they execute.

A *function* is a code object, by identity: two equal functions in two files are two. Module and class bodies are not
functions: they are not counted, but their lines are known as well. A generator or coroutine counts once, when its body
first runs. From Python 3.12 on the counting is done with ``sys.monitoring``, which sees all threads and leaves
``sys.settrace`` and ``sys.setprofile`` to the tests; before, with ``sys.setprofile`` (and for lines, in mode ``all``,
``sys.settrace``), which a test may take away: the summary then says ``"complete": false``.

The *caller* of a function is the nearest function of the tree below it on the stack, whatever lies between; there is none
where a module or class body is nearer, or pytest alone is below.
"""

import opcode
import os
import sys
import threading
from collections import defaultdict
from itertools import count as _count
from threading import get_ident as _get_ident

from .tree_files import TreeFiles

_OPTIMIZED = 0x1
_GENERATOR_LIKE = 0x20 | 0x80 | 0x200
_RESUME = opcode.opmap.get("RESUME")
_DEEPEST = 200  # frames among which a caller is looked for
_THREAD_STARTS = threading.Thread.start.__code__
_RUNNER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Function:
    """One function of the tree: its code object, how often it was called, which of its lines ran."""

    __slots__ = ("code", "file", "counter", "unstarted", "lines")

    def __init__(self, code, file):
        self.code = code
        self.file = file
        self.counter = _count()
        self.unstarted = _count()
        self.lines = set()

    def calls(self):
        """How often it was called; to be asked once, because reading an atomic counter moves it on."""
        return next(self.counter) - next(self.unstarted)


class Body:
    """A module or class body of the tree: its code object, which of its lines ran."""

    __slots__ = ("code", "file", "lines")

    def __init__(self, code, file):
        self.code = code
        self.file = file
        self.lines = set()


class Tracer:
    """Traces this process and its forks from now on. Mode ``tree`` sees the tree only; ``all`` counts all calls, too."""

    kind = "trace"

    def __init__(self, root, mode):
        self.all = mode == "all"
        self.files = TreeFiles(root)
        self._clear()
        self.engine = (_Monitoring if hasattr(sys, "monitoring") else _Profile)(self)
        self.engine.start()

    def _clear(self):
        self.functions = {}
        self.bodies = {}
        self.outside = {}
        self.threads = set()
        self.total = _count()
        self.advance = {}
        self.callers = defaultdict(set)

    def note_caller(self, key, frame):
        """Take note of what called the function `key`; `frame` is the one below it."""
        functions, bodies = self.functions, self.bodies
        for _ in range(_DEEPEST):
            if frame is None:
                return
            caller = id(frame.f_code)
            if caller in functions:
                self.callers[key].add(caller)
                return
            if caller in bodies:
                return
            frame = frame.f_back

    def is_own(self, code):
        """Whether the code is the runner's."""
        return code.co_filename.startswith(_RUNNER)

    def first_seen(self, code):
        """Take note of a code object that runs for the first time. Returns its `Function` if it is one of the tree."""
        file = self.files[code.co_filename]
        if file is None:
            return None
        if code.co_flags & _OPTIMIZED:
            function = self.functions[id(code)] = Function(code, file)
            self.advance[id(code)] = function.counter.__next__
            return function
        self.bodies.setdefault(id(code), Body(code, file))
        return None

    def of(self, code):
        """The function or body of a code object; None for what was not seen."""
        return self.functions.get(id(code)) or self.bodies.get(id(code))

    def start_group(self):
        """Forget all and count from zero."""
        seen = [one.code for one in (*self.functions.values(), *self.bodies.values())]
        self._clear()
        self.engine.restart(seen)

    def import_summary(self):
        """What ran since the trace began: configuration, conftest files, the test module."""
        functions = self._functions()
        modules = {body.file for body in self.bodies.values() if body.code.co_name == "<module>"}
        return {
            "functions": functions,
            "bodies": self._bodies(),
            "files": sorted(modules),
            "calls": sum(function["calls"] for function in functions),
            "total_calls": next(self.total) if self.all else None,
            "complete": self.engine.is_active(),
        }

    def group_summary(self):
        """What ran since the group started; ends the trace."""
        complete = self.engine.is_active()
        total = next(self.total)
        self.engine.stop()
        return {
            "functions": self._functions(),
            "bodies": self._bodies(),
            "total_calls": total if self.all else None,
            "starts_threads": self._starts_threads(),
            "complete": complete,
        }

    def _starts_threads(self):
        """Whether a thread was started by ``threading``, or one calls into the tree."""
        return len(self.threads) > 1 or id(_THREAD_STARTS) in self.outside

    def _bodies(self):
        """Module and class bodies with the lines that ran, in the order in which they began."""
        names = _QualifiedNames(self.files.root)
        return [
            {
                "file": body.file,
                "name": getattr(body.code, "co_qualname", None) or names.of(body.file, body.code),
                "line": body.code.co_firstlineno,
                "lines": sorted(body.lines) if self.engine.sees_lines else None,
            }
            for body in list(self.bodies.values())
        ]

    def _functions(self):
        described = []
        names = _QualifiedNames(self.files.root)
        called = [(function, calls) for function in list(self.functions.values()) for calls in [function.calls()] if calls]
        orders = {id(function.code): order for order, (function, _) in enumerate(called)}
        for function, calls in called:
            code = function.code
            # A copy: a thread that still runs may find another one.
            callers = [orders.get(caller) for caller in list(self.callers.get(id(code), ()))]
            described.append(
                {
                    "file": function.file,
                    "function": getattr(code, "co_qualname", None) or names.of(function.file, code),
                    "line": code.co_firstlineno,
                    "calls": calls,
                    "order": len(described),
                    "lines": sorted(function.lines) if self.engine.sees_lines else None,
                    "callers": None if self.all else sorted(order for order in callers if order is not None),
                }
            )
        return described


class _Monitoring:
    """Python 3.12 and newer."""

    sees_lines = True
    _PREFERRED_TOOLS = (4, 3, 2, 1, 0, 5)

    def __init__(self, tracer):
        self.tracer = tracer
        self.monitoring = monitoring = sys.monitoring
        self.tool = next(tool for tool in self._PREFERRED_TOOLS if monitoring.get_tool(tool) is None)
        monitoring.use_tool_id(self.tool, "gistmill")

    def start(self):
        monitoring, tool = self.monitoring, self.tool
        events = monitoring.events
        monitoring.register_callback(tool, events.PY_START, self._start_callback())
        monitoring.register_callback(tool, events.LINE, self._line_callback())
        monitoring.set_events(tool, events.PY_START)

    def restart(self, seen):
        # Their lines are seen again. Code outside the tree, which is most of what runs, stays as it is: to instrument it
        # again would copy its pages in every fork.
        for code in seen:
            self.monitoring.set_local_events(self.tool, code, 0)
        self.start()

    def stop(self):
        monitoring, tool = self.monitoring, self.tool
        monitoring.register_callback(tool, monitoring.events.PY_START, None)
        monitoring.register_callback(tool, monitoring.events.LINE, None)

    def is_active(self):
        return self.monitoring.get_tool(self.tool) == "gistmill"

    def _start_callback(self):
        tracer, monitoring, tool = self.tracer, self.monitoring, self.tool
        advance, seen_thread, first_seen = tracer.advance, tracer.threads.add, tracer.first_seen
        outside, is_own, count = tracer.outside, tracer.is_own, tracer.total.__next__
        bodies = tracer.bodies
        note_caller, frame_at = tracer.note_caller, sys._getframe
        set_local_events, line = monitoring.set_local_events, monitoring.events.LINE
        disable = monitoring.DISABLE

        def tree_starts(code, offset):
            known = advance.get(id(code))
            if known is None:
                function = first_seen(code)
                if function is None:
                    if id(code) in bodies:
                        set_local_events(tool, code, line)
                        return None
                    if code is _THREAD_STARTS:
                        outside[id(code)] = code
                        return None
                    return disable
                set_local_events(tool, code, line)
                known = function.counter.__next__
            seen_thread(_get_ident())
            known()
            note_caller(id(code), frame_at(1).f_back)

        def anything_starts(code, offset):
            if not code.co_flags & _OPTIMIZED:
                first_seen(code)
                if id(code) in bodies:
                    set_local_events(tool, code, line)
                    return None
                return disable
            key = id(code)
            if key in outside:
                count()
                return None
            known = advance.get(key)
            if known is None:
                if is_own(code):
                    return disable
                function = first_seen(code)
                if function is None:
                    outside[key] = code
                    count()
                    return None
                set_local_events(tool, code, line)
                known = function.counter.__next__
            count()
            seen_thread(_get_ident())
            known()

        return anything_starts if tracer.all else tree_starts

    def _line_callback(self):
        seen, disable = self.tracer.of, self.monitoring.DISABLE

        def line_runs(code, line):
            known = seen(code)
            if known is not None:
                known.lines.add(line)
            return disable

        return line_runs


class _Profile:
    """Python 3.8 to 3.11."""

    def __init__(self, tracer):
        self.tracer = tracer
        self.sees_lines = tracer.all and sys.gettrace() is None
        self.instructions = {}
        self.callback = None

    def start(self):
        self.callback = self._callback()
        threading.setprofile(self.callback)
        if self.sees_lines:
            self.line_callback = self._line_callback()
            threading.settrace(self.line_callback)
            sys.settrace(self.line_callback)
        sys.setprofile(self.callback)

    def restart(self, seen):
        self.start()

    def stop(self):
        sys.setprofile(None)
        threading.setprofile(None)
        if self.sees_lines:
            sys.settrace(None)
            threading.settrace(None)

    def is_active(self):
        return sys.getprofile() is self.callback

    def _begins(self, frame, code):
        """Whether the body of a generator or coroutine begins, rather than goes on or has an exception thrown into it.

        Before 3.11 a generator that is closed before it began looks like one that begins; see `profile`.
        """
        if sys.version_info < (3, 11):
            return frame.f_lasti < 0
        known = self.instructions.get(id(code))
        if known is None:
            known = self.instructions[id(code)] = (code, code.co_code)
        position = frame.f_lasti
        return known[1][position] == _RESUME and known[1][position + 1] == 0

    def _callback(self):
        tracer, begins = self.tracer, self._begins
        advance, seen_thread, first_seen = tracer.advance, tracer.threads.add, tracer.first_seen
        outside, is_own, count, count_all = tracer.outside, tracer.is_own, tracer.total.__next__, tracer.all
        functions, note_caller = tracer.functions, tracer.note_caller

        def profile(frame, event, argument):
            code = frame.f_code
            key = id(code)
            if event != "call":
                if event == "return" and frame.f_lasti < 0 and key in functions:
                    next(functions[key].unstarted)  # closed or thrown into before its body could begin
                return
            if key in outside:
                if count_all and code.co_flags & _OPTIMIZED and not (code.co_flags & _GENERATOR_LIKE and not begins(frame, code)):
                    count()
                return
            if code.co_flags & _GENERATOR_LIKE and not begins(frame, code):
                return
            known = advance.get(key)
            if known is None:
                if is_own(code):
                    return
                function = first_seen(code)
                if function is None:
                    outside[key] = code
                    if count_all and code.co_flags & _OPTIMIZED:
                        count()
                    return
                known = function.counter.__next__
            if count_all:
                count()
            else:
                note_caller(key, frame.f_back)
            seen_thread(_get_ident())
            known()

        return profile

    def _line_callback(self):
        tracer = self.tracer

        def trace(frame, event, argument):
            if event != "call" or tracer.files[frame.f_code.co_filename] is None:
                return None

            def trace_lines(frame, event, argument):
                if event == "line":
                    known = tracer.of(frame.f_code)
                    if known is not None:
                        known.lines.add(frame.f_lineno)
                return trace_lines

            return trace_lines

        return trace


class _QualifiedNames:
    """Qualified names of functions for interpreters whose code objects do not know them, from the source files."""

    def __init__(self, root):
        self.root = root
        self.files = {}

    def of(self, file, code):
        if file not in self.files:
            self.files[file] = names = {}
            try:
                with open(self.root + file, "rb") as source:
                    self._walk(compile(source.read(), file, "exec", dont_inherit=True), "", names)
            except (OSError, SyntaxError, ValueError):
                pass
        return self.files[file].get((code.co_firstlineno, code.co_name), code.co_name)

    def _walk(self, code, prefix, names):
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                name = prefix + constant.co_name
                names.setdefault((constant.co_firstlineno, constant.co_name), name)
                self._walk(constant, name + (".<locals>." if constant.co_flags & _OPTIMIZED else "."), names)
