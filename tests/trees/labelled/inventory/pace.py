"""How fast this machine is at the moment."""

import time


def work(seconds):
    """Keep busy for some seconds of processor time. Returns the seconds that went by on the wall."""
    started, end = time.perf_counter(), time.process_time() + seconds
    while time.process_time() < end:
        pass
    return time.perf_counter() - started


def slowness(seconds):
    """Seconds on the wall for one second of processor time: 1 for a process that has a core to itself."""
    return work(seconds) / seconds
