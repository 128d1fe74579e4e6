"""The report of an attempt has no text, and whoever watches it raises."""

import sys

_report = sys.modules["gistmill_runner.shared"].GroupReport
_report.text = _report.running = lambda self: 1 / 0
