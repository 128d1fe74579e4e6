"""Verdicts a minute for several numbers of clients, with the median and the 99th percentile of what a verdict takes, and what
three cold runs of the same tests take on this machine.

    python bench/serve/throughput.py target/release/gistmill output/gistify/2026.11 [--seconds 60] [options of serve]
"""

import argparse
import http.client
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from load import Mix, Server, ask


def run(server, mix, clients, seconds, most=float("inf")):
    """Seconds of each answer, and those that were not a judgement; ends after so many seconds, or submissions."""
    took, other, lock, until = [], [], threading.Lock(), time.monotonic() + seconds
    last = mix.number + most

    def client():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=900)
        while time.monotonic() < until and mix.number < last:
            instance, text, right = mix.next()
            started = time.monotonic()
            code, answer = ask(server.port, instance, text, connection=connection)
            with lock:
                took.append(time.monotonic() - started)
                if code != 200 or (right is not None and answer["score"]["fidelity"] is not right):
                    other.append((code, instance, answer.get("message")))

    started = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(took), other, time.monotonic() - started


def memory(server, mix, number):
    """Prints what the server holds after each tenth of so many submissions of eight clients; returns what was wrong.

    Nine of ten are broken: what the server keeps of them is as much, and they take no time.
    """
    wrong, begun = [], server.memory()[0]
    print("%12s %12s %13s %14s" % ("submissions", "server MB", "runners MB", "bytes of each"))
    for part in range(1, 11):
        share = number // 10
        _, other, _ = run(server, mix, 8, float("inf"), share)
        wrong += other
        own, below = server.memory()
        print("%12d %12.0f %13.0f %14.0f" % (part * share, own / 1e6, below / 1e6, (own - begun) / (part * share)), flush=True)
    return wrong


def cold(python, dataset, number):
    """Seconds of three cold runs of a witness, one after the other: what a plain script would make of a submission."""
    took = []
    mix = Mix(dataset, 2)
    for instance, text in mix.witnesses[:number]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "concise.py").write_text(text, encoding="utf-8")
            started = time.monotonic()
            for _ in range(3):
                command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "concise.py"]
                subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            took.append(time.monotonic() - started)
    return statistics.mean(took)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", default="1,8,64")
    parser.add_argument("--memory", type=int, metavar="N", help="also: what the server holds while N submissions are judged")
    parser.add_argument("--python", help="the interpreter of an environment of the dataset, for the cold runs")
    arguments, options = parser.parse_known_args()
    server = Server(arguments.program, arguments.dataset, options)
    mix = Mix(arguments.dataset, 1)
    run(server, mix, 2, 10)  # files are in the page cache, and runners are there
    print("%8s %9s %12s %9s %9s %7s %12s %13s" % (
        "clients", "verdicts", "a minute", "median s", "99 % s", "wrong", "server MB", "runners MB"))
    wrong = 0
    for clients in map(int, filter(None, arguments.clients.split(","))):
        took, other, seconds = run(server, mix, clients, arguments.seconds)
        own, below = server.memory()
        wrong += len(other)
        last = took[min(len(took) - 1, int(len(took) * 0.99))]
        print("%8d %9d %12.1f %9.2f %9.2f %7d %12.0f %13.0f" % (
            clients, len(took), 60 * len(took) / seconds, statistics.median(took), last, len(other),
            own / 1e6, below / 1e6), flush=True)
        for one in other[:5]:
            print("   ", one)
    if arguments.memory:
        wrong += len(memory(server, Mix(arguments.dataset, 3, broken=0.9), arguments.memory))
    print("ended with", server.end())
    if arguments.python:
        each = cold(arguments.python, arguments.dataset, 10)
        print("three cold runs of a witness: %.2f s, %.1f a minute one after the other" % (each, 60 / each))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
