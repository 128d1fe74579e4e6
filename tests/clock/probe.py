"""Checks of the clocks, waits and file times of a process: ``python probe.py SECTION``.

Prints `ok NAME` for each check of the section that held, and `FAILED NAME: why` for the others. EXPECTED_SHIFT holds the
seconds by which the wall clock should be ahead; the real time is read from the kernel, past every library.
"""

import asyncio
import concurrent.futures
import contextlib
import ctypes
import datetime
import errno
import multiprocessing
import os
import pathlib
import platform
import queue
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

TIMED_OUT = errno.ETIMEDOUT
SHIFT = int(os.environ.get("EXPECTED_SHIFT", "0"))
LONG_AGO = 1_000_000_000.123456789
SECTIONS = {}
libc = ctypes.CDLL(None, use_errno=True)


def check(section):
    def add(function):
        SECTIONS.setdefault(section, []).append(function)
        return function

    return add


def real_time():
    """Seconds of the kernel's clock, by a bare system call."""
    number = {"x86_64": 228, "aarch64": 113}[platform.machine()]
    timespec = (ctypes.c_long * 2)()
    assert libc.syscall(number, 0, timespec) == 0
    return timespec[0] + timespec[1] / 1e9


# Seconds that a busy machine may add to anything. A wait that takes a shifted clock for the kernel's ends at once or
# not at all.
SLACK = 15


def close(value, expected, tolerance=SLACK):
    assert abs(value - expected) <= tolerance, "%r is not near %r" % (value, expected)


@contextlib.contextmanager
def takes(seconds):
    """The block takes that long, by two clocks; on a busy machine it may take longer."""
    starts = time.monotonic(), time.perf_counter()
    yield
    for start, end in zip(starts, (time.monotonic(), time.perf_counter())):
        assert seconds - 0.005 <= end - start < seconds + SLACK, "took %.4f s instead of %.4f s" % (end - start, seconds)


@contextlib.contextmanager
def raises(kind):
    try:
        yield
    except kind:
        return
    raise AssertionError("no %s" % kind.__name__)


# ---- clocks ----


@check("clocks")
def time_time():
    close(time.time(), real_time() + SHIFT)
    close(time.time_ns() / 1e9, real_time() + SHIFT)


@check("clocks")
def clock_gettime():
    for name in ("CLOCK_REALTIME", "CLOCK_TAI"):
        close(time.clock_gettime(getattr(time, name, 0)), real_time() + SHIFT, 60)
    close(time.clock_gettime(5), real_time() + SHIFT)


@check("clocks")
def other_clocks_are_the_kernels():
    number = {"x86_64": 228, "aarch64": 113}[platform.machine()]
    for clock, read in ((1, time.monotonic), (1, time.perf_counter), (7, lambda: time.clock_gettime(7)), (2, time.process_time)):
        timespec = (ctypes.c_long * 2)()
        before = read()
        assert libc.syscall(number, clock, timespec) == 0
        assert before <= timespec[0] + timespec[1] / 1e9 + 1e-6
        assert timespec[0] + timespec[1] / 1e9 <= read() + 1e-6


@check("clocks")
def dates():
    expected = datetime.datetime.fromtimestamp(real_time() + SHIFT)
    assert abs((datetime.datetime.now() - expected).total_seconds()) < SLACK
    utc = datetime.datetime.fromtimestamp(real_time() + SHIFT, datetime.timezone.utc)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - utc).total_seconds()) < SLACK
    assert datetime.date.today() in (expected.date(), datetime.datetime.now().date())


@check("clocks")
def local_time():
    close(time.mktime(time.localtime()), real_time() + SHIFT)
    close(float(time.strftime("%s")), real_time() + SHIFT)


@check("clocks")
def functions_of_c():
    pair = (ctypes.c_long * 2)()
    assert libc.gettimeofday(pair, None) == 0
    close(pair[0] + pair[1] / 1e6, real_time() + SHIFT)
    zone = (ctypes.c_int * 2)()
    assert libc.gettimeofday(pair, zone) == 0
    close(pair[0] + pair[1] / 1e6, real_time() + SHIFT)
    libc.time.restype = ctypes.c_long
    close(libc.time(pair), real_time() + SHIFT)
    close(pair[0], real_time() + SHIFT)
    assert libc.timespec_get(pair, 1) == 1
    close(pair[0] + pair[1] / 1e9, real_time() + SHIFT)
    assert libc.timespec_get(pair, 99) == 0


@check("clocks")
def date_command():
    close(float(subprocess.check_output(["date", "+%s.%N"])), real_time() + SHIFT)


# ---- waits ----


@check("waits")
def sleep():
    for seconds in (0.05, 0):
        with takes(seconds):
            time.sleep(seconds)


@check("waits")
def event():
    with takes(0.05):
        assert not threading.Event().wait(0.05)


@check("waits")
def event_set_by_a_thread():
    event = threading.Event()
    with takes(0.05):
        threading.Timer(0.05, event.set).start()
        assert event.wait(20)


@check("waits")
def queue_get():
    with takes(0.05), raises(queue.Empty):
        queue.Queue().get(timeout=0.05)
    with takes(0.05), raises(queue.Empty):
        queue.SimpleQueue().get(timeout=0.05)


@check("waits")
def condition():
    condition = threading.Condition()
    with takes(0.05), condition:
        assert not condition.wait(0.05)


@check("waits")
def lock():
    for lock in (threading.Lock(), threading.Semaphore(1)):
        assert lock.acquire()
        with takes(0.05):
            assert not lock.acquire(timeout=0.05)


@check("waits")
def recursive_lock():
    lock = threading.RLock()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(lock.acquire).result(20)
        with takes(0.05):
            assert not lock.acquire(timeout=0.05)
        pool.submit(lock.release).result(20)
    assert lock.acquire(timeout=threading.TIMEOUT_MAX)


@check("waits")
def thread_join():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    with takes(0.05):
        thread.join(0.05)
    assert thread.is_alive()
    done.set()
    thread.join(20)
    assert not thread.is_alive()


@check("waits")
def futures():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        release = threading.Event()
        future = pool.submit(release.wait, 60)
        with takes(0.05):
            assert concurrent.futures.wait([future], timeout=0.05).not_done == {future}
        with raises(concurrent.futures.TimeoutError):
            future.result(timeout=0.01)
        release.set()
        assert future.result(timeout=20)


@check("waits")
def child_with_a_limit():
    with takes(0.05), raises(subprocess.TimeoutExpired):
        subprocess.run(["sleep", "30"], timeout=0.05)
    with takes(0.1):
        subprocess.run(["sleep", "0.1"], timeout=20, check=True)


@check("waits")
def select_poll_and_epoll():
    reader, writer = os.pipe()
    with takes(0.05):
        assert select.select([reader], [], [], 0.05) == ([], [], [])
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    with takes(0.05):
        assert poll.poll(50) == []
    with select.epoll() as epoll:
        epoll.register(reader, select.EPOLLIN)
        with takes(0.05):
            assert epoll.poll(0.05) == []
    os.close(reader)
    os.close(writer)


@check("waits")
def event_loop():
    async def main():
        with takes(0.05):
            await asyncio.sleep(0.05)
        with takes(0.05), raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().create_future(), 0.05)
        with takes(0.05):
            process = await asyncio.create_subprocess_exec("sleep", "0.05")
            assert await asyncio.wait_for(process.wait(), 20) == 0

    asyncio.run(main())


@check("waits")
def processes():
    context = multiprocessing.get_context("fork")
    semaphore = context.Semaphore(0)
    with takes(0.05):
        assert not semaphore.acquire(timeout=0.05)
    with takes(0.05), raises(queue.Empty):
        context.Queue().get(timeout=0.05)
    event = context.Event()
    child = context.Process(target=event.wait, args=(20,))
    child.start()
    with takes(0.05):
        child.join(0.05)
    assert child.is_alive()
    event.set()
    child.join(20)
    assert child.exitcode == 0


def _times_of_a_worker(_):
    start = time.monotonic()
    time.sleep(0.02)
    return time.time() - real_time(), time.monotonic() - start


@check("waits")
def process_pools():
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            shift, slept = pool.map_async(_times_of_a_worker, [0]).get(timeout=60)[0]
        close(shift, SHIFT)
        assert 0.019 <= slept < SLACK


@check("waits")
def signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    with takes(0.05):
        assert signal.sigtimedwait([signal.SIGUSR1], 0.05) is None
    alarms = []
    signal.signal(signal.SIGALRM, lambda *_: alarms.append(time.monotonic()))
    start = time.monotonic()
    # Again and again, because the first may come before the process waits for it.
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    while not alarms:
        signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert 0.045 <= alarms[0] - start < SLACK


@check("waits")
def sockets():
    first, second = socket.socketpair()
    with first, second:
        first.settimeout(0.05)
        with takes(0.05), raises(socket.timeout):
            first.recv(1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.05)
        with takes(0.05), raises(socket.timeout):
            listener.accept()


# ---- deadlines of C that Python does not use, or not always ----


def _deadline(seconds, clock=0):
    at = time.clock_gettime(clock) + seconds
    return (ctypes.c_long * 2)(int(at), int(at % 1 * 1e9))


def _timed(name, expected, *arguments, clocks=(0,), with_clock=False):
    function = getattr(libc, name, None)
    if function is None:
        assert with_clock or name == "pthread_timedjoin_np", name
        return
    for clock in clocks:
        chosen = (clock,) if with_clock else ()
        with takes(0.05):
            assert function(*arguments, *chosen, _deadline(0.05, clock)) == expected, name
        for past in (_deadline(-5, clock), (ctypes.c_long * 2)(1, 0)):
            with takes(0):
                assert function(*arguments, *chosen, past) == expected, name


def _zeroed(size=256):
    return ctypes.create_string_buffer(size)


@check("deadlines")
def semaphores():
    semaphore = _zeroed()
    assert libc.sem_init(semaphore, 0, 0) == 0
    _timed("sem_timedwait", -1, semaphore)
    assert ctypes.get_errno() == TIMED_OUT
    _timed("sem_clockwait", -1, semaphore, clocks=(0, 1), with_clock=True)


@check("deadlines")
def conditions():
    condition, mutex = _zeroed(), _zeroed()
    assert libc.pthread_mutex_lock(mutex) == 0
    _timed("pthread_cond_timedwait", TIMED_OUT, condition, mutex)
    _timed("pthread_cond_clockwait", TIMED_OUT, condition, mutex, clocks=(0, 1), with_clock=True)
    attributes, monotonic = _zeroed(), _zeroed()
    assert libc.pthread_condattr_init(attributes) == 0
    assert libc.pthread_condattr_setclock(attributes, 1) == 0
    assert libc.pthread_cond_init(monotonic, attributes) == 0
    _timed("pthread_cond_timedwait", TIMED_OUT, monotonic, mutex, clocks=(1,))


@check("deadlines")
def conditions_of_c11():
    if not hasattr(libc, "cnd_timedwait"):
        return
    condition, mutex = _zeroed(), _zeroed()
    assert libc.mtx_init(mutex, 2) == 0 and libc.cnd_init(condition) == 0 and libc.mtx_lock(mutex) == 0
    timed_out = 4  # thrd_timedout
    _timed("cnd_timedwait", timed_out, condition, mutex)
    _timed("mtx_timedlock", timed_out, mutex)


@check("deadlines")
def mutexes():
    mutex = _zeroed()
    assert libc.pthread_mutex_lock(mutex) == 0
    _timed("pthread_mutex_timedlock", TIMED_OUT, mutex)
    _timed("pthread_mutex_clocklock", TIMED_OUT, mutex, clocks=(0, 1), with_clock=True)


@check("deadlines")
def read_write_locks():
    lock = _zeroed()
    assert libc.pthread_rwlock_rdlock(lock) == 0
    _timed("pthread_rwlock_timedwrlock", TIMED_OUT, lock)
    _timed("pthread_rwlock_clockwrlock", TIMED_OUT, lock, clocks=(0, 1), with_clock=True)
    assert libc.pthread_rwlock_unlock(lock) == 0

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(libc.pthread_rwlock_wrlock, lock).result(20) == 0
        _timed("pthread_rwlock_timedrdlock", TIMED_OUT, lock)
        _timed("pthread_rwlock_clockrdlock", TIMED_OUT, lock, clocks=(0, 1), with_clock=True)


@check("deadlines")
def joins():
    thread, semaphore = ctypes.c_ulong(), _zeroed()
    assert libc.sem_init(semaphore, 0, 0) == 0
    waits = ctypes.cast(libc.sem_wait, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(thread), None, waits, semaphore) == 0
    _timed("pthread_timedjoin_np", TIMED_OUT, thread, None)
    _timed("pthread_clockjoin_np", TIMED_OUT, thread, None, clocks=(0, 1), with_clock=True)
    assert libc.sem_post(semaphore) == 0
    assert libc.pthread_join(thread, None) == 0


@check("deadlines")
def message_queues():
    library = libc
    if not hasattr(libc, "mq_open"):
        library = ctypes.CDLL("librt.so.1", use_errno=True)
    name = b"/gistmill-clock-%d" % os.getpid()
    attributes = (ctypes.c_long * 8)(0, 1, 8)
    descriptor = library.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, attributes)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    library.mq_unlink(name)
    text = _zeroed(8)
    libc.mq_timedreceive.restype = ctypes.c_ssize_t
    _timed("mq_timedreceive", -1, descriptor, text, ctypes.c_size_t(8), None)
    assert library.mq_send(descriptor, b"x", ctypes.c_size_t(1), 0) == 0
    _timed("mq_timedsend", -1, descriptor, text, ctypes.c_size_t(1), 0)
    assert ctypes.get_errno() == TIMED_OUT
    assert libc.mq_timedreceive(descriptor, text, ctypes.c_size_t(8), None, _deadline(5)) == 1
    os.close(descriptor)


@check("deadlines")
def sleep_until():
    for clock in (0, 1):
        with takes(0.05):
            assert libc.clock_nanosleep(clock, 1, _deadline(0.05, clock), None) == 0
        with takes(0.05):
            assert libc.clock_nanosleep(clock, 0, (ctypes.c_long * 2)(0, 50_000_000), None) == 0
        with takes(0):
            assert libc.clock_nanosleep(clock, 1, _deadline(-5, clock), None) == 0


def _setting(clock, absolute):
    return (ctypes.c_long * 4)(0, 0, *(_deadline(0.05, clock) if absolute else (0, 50_000_000)))


@check("deadlines")
def timers_of_descriptors():
    for clock in (0, 1):
        for absolute in (0, 1):
            descriptor = libc.timerfd_create(clock, 0)
            with takes(0.05):
                assert libc.timerfd_settime(descriptor, absolute, _setting(clock, absolute), None) == 0
                assert os.read(descriptor, 8) == struct.pack("@Q", 1)
            os.close(descriptor)


@check("deadlines")
def timers_of_processes():
    library = libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1", use_errno=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    event = _zeroed(64)
    struct.pack_into("@qii", event, 0, 0, signal.SIGUSR2, 0)  # SIGEV_SIGNAL
    for clock in (0, 1):
        for absolute in (0, 1):
            timer = ctypes.c_void_p()
            assert library.timer_create(clock, event, ctypes.byref(timer)) == 0
            with takes(0.05):
                assert libc.timer_settime(timer, absolute, _setting(clock, absolute), None) == 0
                assert signal.sigtimedwait([signal.SIGUSR2], 20) is not None
            assert library.timer_delete(timer) == 0


# ---- file times ----


def _all_views(path):
    """What every way to ask says about a file."""
    with open(path) as file:
        yield os.fstat(file.fileno())
    yield os.stat(path)
    yield os.lstat(path)
    yield pathlib.Path(path).stat()
    folder, name = os.path.split(path)
    with os.scandir(folder) as entries:
        yield next(entry.stat() for entry in entries if entry.name == name)
    with os.scandir(folder) as entries:
        yield next(entry.stat(follow_symlinks=False) for entry in entries if entry.name == name)
    descriptor = os.open(folder, os.O_RDONLY)
    yield os.stat(name, dir_fd=descriptor)
    os.close(descriptor)


def _real_times(path):
    """Access and modification time as the kernel has them."""
    number = {"x86_64": 262, "aarch64": 79}[platform.machine()]
    buffer = (ctypes.c_long * 32)()
    assert libc.syscall(number, -100, os.fsencode(path), buffer, 0) == 0
    return buffer[9] + buffer[10] / 1e9, buffer[11] + buffer[12] / 1e9


def _written(folder, name="file"):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(name)
    return path


def in_folder(function):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            function(folder)

    run.__name__ = function.__name__
    return run


@check("files")
@in_folder
def just_written(folder):
    path = _written(folder)
    views = list(_all_views(path))
    assert len(views) == 7
    for view in views:
        for seconds in (view.st_mtime, view.st_ctime, view.st_atime):
            assert -0.02 <= time.time() - seconds < SLACK, (seconds, time.time())
        assert view.st_mtime_ns == views[0].st_mtime_ns
    close(_real_times(path)[1], real_time())


@check("files")
@in_folder
def set_to_now(folder):
    path = _written(folder)
    now = time.time_ns()
    os.utime(path, ns=(now, now - 1))
    for view in _all_views(path):
        assert (view.st_atime_ns, view.st_mtime_ns) == (now, now - 1)
    close(_real_times(path)[1], real_time())
    os.utime(path)
    assert -0.02 <= time.time() - os.stat(path).st_mtime < SLACK


@check("files")
@in_folder
def set_to_other_dates(folder):
    path = _written(folder)
    now = time.time()
    for seconds in (0, 1, 86400 * 365, LONG_AGO, now - 3600, now + 1, now + 3600, now + 86400 * 3000, now - 86400 * 3000):
        nanos = int(seconds * 1e9)
        os.utime(path, ns=(nanos, nanos))
        for view in _all_views(path):
            assert (view.st_atime_ns, view.st_mtime_ns) == (nanos, nanos), seconds
        with open(path) as file:
            os.utime(file.fileno(), ns=(nanos, nanos + 1))
        for view in _all_views(path):
            assert (view.st_atime_ns, view.st_mtime_ns) == (nanos, nanos + 1), seconds


@check("files")
@in_folder
def set_by_older_functions(folder):
    path = _written(folder)
    encoded = os.fsencode(path)
    now = int(time.time())
    for seconds in (now, int(LONG_AGO)):
        pair = (ctypes.c_long * 4)(seconds, 250_000, seconds, 750_000)
        with open(path) as file:
            calls = {
                "utimes": lambda: libc.utimes(encoded, pair),
                "lutimes": lambda: libc.lutimes(encoded, pair),
                "futimes": lambda: libc.futimes(file.fileno(), pair),
                "futimesat": lambda: libc.futimesat(-100, encoded, pair),
            }
            for name, call in calls.items():
                os.utime(path, (5, 5))
                assert call() == 0, name
                view = os.stat(path)
                expected = (seconds * 10**9 + 250_000_000, seconds * 10**9 + 750_000_000)
                assert (view.st_atime_ns, view.st_mtime_ns) == expected, name
        assert libc.utime(encoded, (ctypes.c_long * 2)(seconds, seconds - 1)) == 0
        view = os.stat(path)
        assert (view.st_atime, view.st_mtime) == (seconds, seconds - 1)
    assert libc.utimes(encoded, (ctypes.c_long * 4)(0, 1_000_000, 0, 0)) == -1
    assert ctypes.get_errno() == errno.EINVAL
    assert libc.utime(encoded, None) == 0
    close(os.stat(path).st_mtime, time.time())
    assert libc.utime(b"/nowhere/at/all", None) == -1
    assert ctypes.get_errno() == errno.ENOENT


@check("files")
@in_folder
def statx_and_the_older_stats(folder):
    path = _written(folder)
    expected = os.stat(path)
    buffer = (ctypes.c_long * 64)()
    if hasattr(libc, "statx"):
        assert libc.statx(-100, os.fsencode(path), 0, 0xFFF, buffer) == 0
        nanos = (ctypes.c_uint * 128).from_buffer(buffer)
        for at, seconds in ((8, expected.st_atime_ns), (12, expected.st_ctime_ns), (14, expected.st_mtime_ns)):
            assert buffer[at] * 10**9 + nanos[2 * at + 2] == seconds
        close(buffer[10], time.time())
    for suffix in ("", "64"):
        with open(path) as file:
            calls = {
                "__xstat": lambda f: f(1, os.fsencode(path), buffer),
                "__lxstat": lambda f: f(1, os.fsencode(path), buffer),
                "__fxstat": lambda f: f(1, file.fileno(), buffer),
                "__fxstatat": lambda f: f(1, -100, os.fsencode(path), buffer, 0),
                "stat": lambda f: f(os.fsencode(path), buffer),
                "lstat": lambda f: f(os.fsencode(path), buffer),
                "fstat": lambda f: f(file.fileno(), buffer),
                "fstatat": lambda f: f(-100, os.fsencode(path), buffer, 0),
            }
            for name, call in calls.items():
                function = getattr(libc, name + suffix, None)
                if function is None:
                    continue
                ctypes.memset(buffer, 0, ctypes.sizeof(buffer))
                assert call(function) == 0, name
                assert buffer[11] * 10**9 + buffer[12] == expected.st_mtime_ns, name
                assert buffer[13] * 10**9 + buffer[14] == expected.st_ctime_ns, name
                assert buffer[6] == len("file"), name


@check("files")
@in_folder
def links(folder):
    path = _written(folder)
    link = os.path.join(folder, "link")
    os.symlink(path, link)
    now = time.time_ns()
    os.utime(link, ns=(now, now), follow_symlinks=False)
    os.utime(path, ns=(5, 5))
    assert os.lstat(link).st_mtime_ns == now
    assert os.stat(link).st_mtime_ns == 5
    assert os.stat(link, follow_symlinks=False).st_mtime_ns == now


@check("files")
@in_folder
def copies(folder):
    source, copy = _written(folder, "source"), os.path.join(folder, "copy")
    shutil.copy2(source, copy)
    assert os.stat(copy).st_mtime_ns == os.stat(source).st_mtime_ns
    subprocess.run(["cp", "-p", source, copy + "2"], check=True)
    assert os.stat(copy + "2").st_mtime_ns == os.stat(source).st_mtime_ns
    subprocess.run(["touch", copy], check=True)
    close(os.stat(copy).st_mtime, time.time())
    shutil.copy2(os.__file__, copy)
    assert os.stat(copy).st_mtime_ns // 1000 == os.stat(os.__file__).st_mtime_ns // 1000
    shown = subprocess.check_output(["stat", "-c", "%Y", source])
    assert int(shown) == int(os.stat(source).st_mtime)


@check("files")
def older_files_keep_their_times():
    path = os.environ["OLD_FILE"]
    for view in _all_views(path):
        assert view.st_mtime_ns == int(os.environ["OLD_MTIME_NS"]), view.st_mtime_ns
    close(_real_times(path)[1], os.stat(path).st_mtime, 1e-5)


@check("files")
def errors_are_the_kernels():
    for call in (os.stat, os.lstat, os.utime):
        with raises(FileNotFoundError):
            call("/nowhere/at/all")
    with raises(OSError):
        os.fstat(12345)


# ---- processes ----


@check("processes")
def fork():
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                close(time.time(), real_time() + SHIFT)
                with takes(0.02):
                    threading.Event().wait(0.02)
                os._exit(7)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 7 << 8


@check("processes")
def fork_with_threads():
    stop = threading.Event()

    def read():
        while not stop.is_set():
            time.time()
            os.stat("/")

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns of forks with threads
                child = os.fork()
            if child == 0:
                os._exit(0 if abs(time.time() - real_time() - SHIFT) < SLACK and os.stat("/") else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()


@check("processes")
def children_inherit():
    program = "import time; print(time.time())"
    close(float(subprocess.check_output([sys.executable, "-c", program])), real_time() + SHIFT)
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', %r], check=True)" % program
    close(float(subprocess.check_output([sys.executable, "-c", nested])), real_time() + SHIFT)
    close(float(subprocess.check_output(["sh", "-c", "date +%s"])), real_time() + SHIFT)


@check("processes")
def in_a_signal_handler():
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(time.time()))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    deadline = time.monotonic() + 0.2
    while time.monotonic() < deadline:
        os.stat("/")
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen
    for moment in seen:
        close(moment, real_time() + SHIFT)


@check("cost")
def one_reading():
    best = {}
    for name in ("time", "monotonic"):
        read = getattr(time, name)
        rounds = []
        for _ in range(20):
            start = time.perf_counter_ns()
            for _ in range(20000):
                read()
            rounds.append((time.perf_counter_ns() - start) / 20000)
        best[name] = min(rounds)
    print("ns " + " ".join("%s=%.1f" % entry for entry in best.items()))


def main(section):
    failed = False
    for function in SECTIONS[section]:
        try:
            function()
        except BaseException:
            failed = True
            print("FAILED %s: %s" % (function.__name__, traceback.format_exc()), flush=True)
        else:
            print("ok " + function.__name__, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
