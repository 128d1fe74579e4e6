"""Work that others do."""

import queue
import threading

from inventory.stock import count, label


def in_threads(names):
    """Labels of all names, made by one thread each."""
    labels = {}
    threads = [threading.Thread(target=lambda name=name: labels.update({name: label(name)})) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [labels[name] for name in names]


def through_queue(names):
    """Labels of all names, made by one thread."""
    orders, labels = queue.Queue(), queue.Queue()

    def serve():
        while True:
            name = orders.get(timeout=60)
            if name is None:
                return
            labels.put(label(name))

    thread = threading.Thread(target=serve)
    thread.start()
    for name in names:
        orders.put(name)
    orders.put(None)
    thread.join()
    return [labels.get(timeout=60) for _ in range(count(names))]
