"""What other threads than the test's own print comes late, and what is still being printed when the test has ended is reported.

Whether such a line is part of what a test shows is a matter of luck: here it is always told apart from what a test shows
where it is quick or slow to end.
"""

import sys
from _thread import _count, get_ident
from time import sleep

_PAUSE, _MOST = 0.1, 5
"""Seconds before a write, and how many such pauses an attempt has; as many again at the ends of cases."""
_STARTS = ("_start_new_thread", "_start_joinable_thread")
_MOST_TEXT = 400
_SAYS = "another thread was printing when the test had ended: "


class LateWrites:
    """Pauses other threads before they write into pytest's capture, and looks at what they do when a case has ended."""

    def __init__(self, written):
        """`written()` gives how much was written past the capture, in bytes."""
        self.written = written
        self.own = get_ident()
        self.before_writes = self.at_ends = _MOST
        self.pending = {}
        self.starts, self.is_installed = {}, False

    def start(self):
        """From now on, in this process and its forks. Nothing is patched before there is another thread."""
        threading = sys.modules.get("threading")
        self.starts = {name: getattr(threading, name) for name in _STARTS if hasattr(threading, name)}
        if _count() > 0 or not self.starts:
            self._install(threading)
            return

        def starting(original):
            def start(*arguments, **named):
                self._install(threading)
                return original(*arguments, **named)

            return start

        for name, original in self.starts.items():
            setattr(threading, name, starting(original))

    def _install(self, threading):
        for name, original in self.starts.items():
            setattr(threading, name, original)
        self.starts = {}
        if self.is_installed:
            return
        self.is_installed = True
        capture = sys.modules.get("_pytest.capture")
        for kind in filter(None, (getattr(capture, name, None) for name in ("EncodedFile", "CaptureIO"))):
            self._wrap(kind)

    def _wrap(self, kind):
        original, pending = kind.write, self.pending

        def write(stream, text):
            # `print` writes the end of a line by itself: it belongs to what came before.
            if get_ident() == self.own or text == "\n":
                return original(stream, text)
            thread = get_ident()
            pending[thread] = text
            try:
                if self.before_writes > 0:
                    self.before_writes -= 1
                    sleep(_PAUSE)
                return original(stream, text)
            finally:
                pending.pop(thread, None)

        kind.write = write

    def left(self):
        """A case has ended: what is still being printed, in words; empty where nothing is."""
        if _count() == 0 or self.at_ends <= 0:
            return ""
        self.at_ends -= 1
        found, before = list(self.pending.values()), self.written()
        if not found:
            sleep(_PAUSE)
            found = list(self.pending.values())
        if not found and self.written() == before:
            return ""
        return _SAYS + "".join(map(str, found))[:_MOST_TEXT] + "\n"
