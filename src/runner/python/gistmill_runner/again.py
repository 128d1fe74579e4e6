"""Cases that a plugin, or a hook of the repository, runs again until they pass: what counts is how the first try ended."""

import unittest

import pytest

from .collect import qualified_name, tail

_NO_FAILURES = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)
_SAYS = "fails at first, and passes only because it is run again\n"


def type_of(raised):
    """The class of what was raised; None for nothing, and for what a plugin has made of it (pytest-subtests wraps a skip twice)."""
    try:
        return None if raised is None else raised.type
    except Exception:
        return None


class Again:
    """How the tries of the running case ended: as pytest reports them, and as its function did."""

    def __init__(self):
        self.reset()

    def reset(self):
        """A case starts."""
        self.calls = 0
        self.failure = None
        self.raised = None

    def failed(self, report, call):
        """pytest makes a report of a phase that failed. What runs the case again may change that report later."""
        if self.failure is None:
            self.failure = (report.when, type_of(call.excinfo), report.longreprtext)

    def called(self, raised):
        """The test function was called, and `raised` this, or None."""
        self.calls += 1
        if raised is not None and self.raised is None and not issubclass(raised[0], _NO_FAILURES):
            self.raised = ("call", raised[0], "%s: %s" % (raised[0].__name__, raised[1]))

    def is_hidden(self):
        """Whether a case that is reported as passed failed before."""
        return self.failure is not None or (self.raised is not None and self.calls > 1)

    def first(self, limit):
        """What is known of the failure."""
        when, kind, text = self.failure or self.raised
        return {
            "outcome": "failed" if when == "call" else "error",
            "exception": None if kind is None else qualified_name(kind),
            "message": tail(_SAYS + text, limit),
        }
