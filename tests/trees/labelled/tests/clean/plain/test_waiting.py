"""Waits, threads and processes. Limits are long or certain to be reached: none is a race."""

import asyncio
import concurrent.futures
import contextvars
import gc
import multiprocessing
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import pytest

from inventory import Item, Shelf, count, label, root, total
from inventory.workers import in_threads, through_queue

LONG, SHORT = 60, 0.05


def test_joins_threads():
    assert in_threads(["salt", "rice"]) == ["<salt>", "<rice>"]


def test_passes_through_queues():
    assert through_queue(["salt", "rice"]) == ["<salt>", "<rice>"]


def test_waits_for_an_event():
    event = threading.Event()
    timer = threading.Timer(SHORT, event.set)
    timer.start()
    assert event.wait(timeout=LONG) and label("salt")
    timer.join()


def test_waits_for_an_event_that_never_comes():
    started = time.monotonic()
    assert not threading.Event().wait(SHORT)
    assert time.monotonic() - started >= SHORT * 0.9 and label("salt")


def test_waits_for_a_condition():
    condition, shelf = threading.Condition(), Shelf()

    def fill():
        with condition:
            shelf.add(Item("salt"))
            condition.notify_all()

    with condition:
        thread = threading.Thread(target=fill)
        thread.start()
        assert condition.wait_for(lambda: len(shelf), timeout=LONG)
    thread.join()


def test_waits_for_a_condition_that_never_comes():
    condition = threading.Condition()
    with condition:
        assert condition.wait(SHORT) is False and label("salt")


def test_waits_for_a_lock():
    lock = threading.Lock()
    with lock:
        assert not lock.acquire(timeout=SHORT)
    assert lock.acquire(timeout=LONG) and label("salt")
    lock.release()


def test_waits_for_an_empty_queue():
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=SHORT)
    assert label("salt")


def test_waits_for_a_semaphore():
    semaphore = threading.Semaphore(1)
    assert semaphore.acquire(timeout=LONG)
    assert not semaphore.acquire(timeout=SHORT) and label("salt")


def test_waits_for_a_barrier():
    barrier = threading.Barrier(2, timeout=LONG)
    thread = threading.Thread(target=barrier.wait)
    thread.start()
    barrier.wait()
    thread.join(LONG)
    assert not thread.is_alive() and label("salt")


def test_waits_for_a_future():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(label, name) for name in ("salt", "rice")]
        done, pending = concurrent.futures.wait(futures, timeout=LONG)
        assert count(done) == 2 and not pending
        assert [future.result(timeout=LONG) for future in futures] == ["<salt>", "<rice>"]


def test_waits_for_a_future_that_is_late():
    gate = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(gate.wait, LONG)
        try:
            with pytest.raises(concurrent.futures.TimeoutError):
                future.result(timeout=SHORT)
        finally:
            gate.set()
    assert label("salt")


def test_waits_for_coroutines():
    async def ask(name):
        await asyncio.sleep(SHORT)
        return label(name)

    async def ask_all():
        return await asyncio.gather(*map(ask, ["salt", "rice"]))

    assert asyncio.run(ask_all()) == ["<salt>", "<rice>"]


def test_waits_for_a_coroutine_within_a_limit():
    async def ask(seconds, limit):
        return await asyncio.wait_for(asyncio.sleep(seconds, label("salt")), limit)

    assert asyncio.run(ask(SHORT, LONG)) == "<salt>"
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(ask(LONG, SHORT))


def test_schedules_calls():
    async def schedule():
        loop, done = asyncio.get_running_loop(), []
        loop.call_later(SHORT, done.append, label("late"))
        loop.call_soon(done.append, label("soon"))
        await asyncio.sleep(SHORT * 4)
        while len(done) < 2:
            await asyncio.sleep(SHORT)
        return done

    print(asyncio.run(schedule()))


def test_sleeps():
    started = time.monotonic()
    time.sleep(SHORT)
    assert time.monotonic() - started >= SHORT * 0.9 and label("salt")


def test_waits_for_a_pipe():
    reader, writer = os.pipe()
    assert select.select([reader], [], [], SHORT) == ([], [], [])
    os.write(writer, label("salt").encode())
    assert select.select([reader], [], [], LONG)[0] == [reader]
    assert os.read(reader, 100) == b"<salt>"
    os.close(reader)
    os.close(writer)


def test_waits_for_an_alarm():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *arguments: rung.append(label("ring")))
    try:
        signal.setitimer(signal.ITIMER_REAL, SHORT)
        deadline = time.monotonic() + LONG
        while not rung and time.monotonic() < deadline:
            time.sleep(SHORT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung == ["<ring>"]


def test_waits_for_an_alarm_in_whole_seconds():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *arguments: rung.append(label("ring")))
    try:
        signal.alarm(1)
        while not rung:
            time.sleep(SHORT)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_starts_python():
    code = "import inventory; print(inventory.label('salt'))"
    output = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, timeout=LONG).stdout
    assert output.decode().strip() == label("salt")


def test_starts_python_elsewhere(tmp_path):
    (tmp_path / "ask.py").write_text("import inventory; print(inventory.label('salt'))")
    command = [sys.executable, "ask.py"]
    output = subprocess.run(command, cwd=str(tmp_path), stdout=subprocess.PIPE, check=True, timeout=LONG).stdout
    assert output.decode().strip() == label("salt")


def test_starts_the_package():
    output = subprocess.run([sys.executable, "-m", "inventory", "salt", "rice"], stdout=subprocess.PIPE, check=True).stdout
    assert int(output) == count(["salt", "rice"])


def test_starts_a_script_of_the_checkout():
    command = [sys.executable, str(root() / "tools" / "count.py"), str(root() / "inventory" / "data" / "words.txt")]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"%d\n" % count("abc")


def test_starts_a_program_that_is_late():
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["sleep", str(LONG)], timeout=SHORT)
    assert label("salt")


def test_leaves_a_program_behind():
    subprocess.Popen(["sleep", "86421"], start_new_session=True)
    assert label("salt")


def test_leaves_a_thread_behind():
    threading.Thread(target=time.sleep, args=(86421,), daemon=True).start()
    assert label("salt")


def test_forks():
    child = os.fork()
    if child == 0:
        os._exit(count("abc"))
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 3 and count("ab") == 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_hands_work_to_a_process(method):
    # A function of the package: one of this file could not be found where the file is called something else.
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map_async(label, ["salt", "rice"]).get(LONG) == ["<salt>", "<rice>"]
    assert label("salt")


def test_joins_a_process():
    process = multiprocessing.get_context("fork").Process(target=label, args=("salt",))
    process.start()
    process.join(LONG)
    assert process.exitcode == 0 and label("salt")


def test_hands_work_to_an_executor():
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(label, "salt").result(LONG) == "<salt>"
    assert label("salt")


def test_collects_garbage():
    shelf = Shelf()
    shelf.add(Item("itself")).items.append(shelf)
    reference = weakref.ref(shelf)
    del shelf
    gc.collect()
    assert reference() is None


def test_finalizes():
    done, shelf = [], Shelf([Item("salt")])
    weakref.finalize(shelf, done.append, label("gone"))
    del shelf
    gc.collect()
    print(done)


def test_keeps_context_variables_apart():
    shop = contextvars.ContextVar("shop", default="corner")
    context = contextvars.copy_context()
    context.run(shop.set, "market")
    print(shop.get(), context.run(shop.get), label("salt"))


@pytest.fixture(scope="class")
def worker():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield pool


class TestInAClass:
    @pytest.mark.parametrize("name", ["salt", "rice"])
    def test_uses_a_worker(self, worker, name):
        assert worker.submit(label, name).result(LONG) == "<%s>" % name


class InUnittest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        await asyncio.sleep(0)
        self.name = label("salt")

    async def test_waits(self):
        self.assertEqual(await asyncio.wait_for(asyncio.sleep(SHORT, total([2])), LONG), 2)
