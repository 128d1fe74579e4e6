"""Tests that change the interpreter under everybody's feet, and leave it so."""

import builtins
import gc
import json
import os
import random
import resource
import signal
import sys
import threading
import time

from vault import doors


def test_clean_before():
    assert doors(2, 3) == 6


def test_ignores_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    assert doors(1, 1) == 1


def test_answers_signals_with_handlers_of_its_own():
    def refuse(number, frame):
        raise RuntimeError(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, refuse)
    assert doors(1, 1) == 1


def test_lowers_the_recursion_limit():
    sys.setrecursionlimit(120)
    assert doors(1, 1) == 1


def test_raises_the_recursion_limit():
    sys.setrecursionlimit(10**6)
    assert doors(1, 1) == 1


def test_replaces_the_time_for_good():
    time.time = time.monotonic = time.perf_counter = time.sleep = lambda *ignored: 0
    time.monotonic_ns = time.time_ns = time.perf_counter_ns = lambda: 0
    assert doors(1, 1) == 1


def test_replaces_open_for_good():
    builtins.open = None
    assert doors(1, 1) == 1


def test_replaces_what_a_runner_could_need():
    os._exit = os.write = os.read = json.dumps = signal.signal = os.getpid = os.fork = None
    threading.Thread = random.seed = gc.collect = None
    assert doors(1, 1) == 1


def test_takes_modules_away():
    for name in ("json", "marshal", "mmap", "struct", "traceback", "hashlib", "signal"):
        sys.modules.pop(name, None)
        sys.modules[name] = None
    assert doors(1, 1) == 1


def test_has_the_last_word_on_imports():
    class Refuse:
        def find_spec(self, name, path=None, target=None):
            raise ImportError(name)

    sys.meta_path.insert(0, Refuse())
    assert doors(1, 1) == 1


def test_switches_tracing_off():
    sys.settrace(None)
    sys.setprofile(None)
    assert doors(1, 1) == 1


def test_lowers_its_own_limits():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    assert doors(1, 1) == 1


def test_clean_after():
    assert open(__file__).readline().startswith('"""')
    assert time.time() > 1_700_000_000
    assert sys.getrecursionlimit() == 1000
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert doors(4, 3) == 12
