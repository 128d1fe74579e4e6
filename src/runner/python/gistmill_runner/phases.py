"""Output past pytest's capture: what is written while a phase of a case runs stays, what is reported between phases goes.

pytest and its reporting plugins write when no phase runs (after a case, at the end of the session), and it belongs to no
test. What a test writes past the capture, it writes in a phase.
"""

import sys
from os import fstat, ftruncate

import pytest


class Phases:
    """The plugin of a group process that keeps the output of phases apart."""

    def __init__(self, raw_output):
        self._file = _identity(fstat(raw_output))
        self._kept = 0

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        self.drop()
        yield
        self._keep()

    pytest_runtest_call = pytest_runtest_teardown = pytest_runtest_setup

    def drop(self):
        """Forget what was written since the last phase."""
        descriptor, size = self._written()
        if descriptor is not None and size > self._kept:
            ftruncate(descriptor, self._kept)

    def size(self):
        """Bytes of the output past the capture so far."""
        return self._written()[1]

    def _keep(self):
        descriptor, size = self._written()
        if descriptor is None:
            self._file = None  # the test has put other files in the place of both streams: nothing is dropped any more
        else:
            self._kept = size

    def _written(self):
        """(descriptor of the output past the capture, its size), or (None, 0) when it is out of reach."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        for descriptor in (1, 2):
            try:
                status = fstat(descriptor)
            except OSError:
                continue
            if _identity(status) == self._file:
                return descriptor, status.st_size
        return None, 0


def _identity(status):
    return status.st_dev, status.st_ino
