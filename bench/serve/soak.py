"""A judge under siege: clients vanish in the middle, submissions bomb, requests are garbage, and the server is killed twice.
Every answer that comes must be right, and nothing that a client waits for may be lost.

    python bench/serve/soak.py target/release/gistmill output/gistify/2026.11 [--minutes 30] [options of serve]
"""

import argparse
import http.client
import json
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from load import BOMBS, Mix, Server, ask


class Siege:
    def __init__(self, program, dataset, options, minutes, without):
        self.bombs = sorted(set(BOMBS) - set(without))
        self.program, self.dataset, self.options = program, dataset, options
        self.until = time.monotonic() + 60 * minutes
        self.mix = Mix(dataset, 3)
        self.lock = threading.Lock()
        self.counts = {}
        self.wrong = []
        self.longest = 0.0
        self.server = Server(program, dataset, options)
        self.port = self.server.port
        self.peak = (0, 0)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def is_over(self):
        return time.monotonic() >= self.until

    def honest(self):
        """Hands in what is known to be right or wrong, until each has its answer, whatever happens to the server."""
        while not self.is_over():
            instance, text, right = self.mix.next()
            started = time.monotonic()
            while True:
                try:
                    code, answer = ask(self.port, instance, text)
                except (OSError, http.client.HTTPException, ValueError):
                    self.count("handed in again")
                    time.sleep(0.2)
                    continue
                if code in (429, 503):
                    self.count("busy or stopping")
                    time.sleep(0.2)
                    continue
                break
            self.count("answers")
            with self.lock:
                self.longest = max(self.longest, time.monotonic() - started)
            fidelity = answer.get("score", {}).get("fidelity")
            if code != 200 or fidelity is None or (right is not None and fidelity is not right):
                self.wrong.append((code, instance, right, json.dumps(answer)[:1000]))

    def bomber(self):
        chosen = random.Random(5)
        while not self.is_over():
            instance, text, _ = self.mix.next()
            kind = chosen.choice(self.bombs)
            try:
                code, answer = ask(self.port, instance, BOMBS[kind] + text)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)
                continue
            self.count("bombs")
            if code == 200 and answer["score"]["fidelity"] is not False:
                self.wrong.append((code, instance, kind, json.dumps(answer)[:1000]))

    def vanisher(self):
        chosen = random.Random(6)
        while not self.is_over():
            instance, text, _ = self.mix.next()
            body = json.dumps({"instance_id": instance, "submission": text}).encode()
            head = "POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                    connection.sendall((head % len(body)).encode() + body[: chosen.choice([0, 100, len(body)])])
                    time.sleep(chosen.choice([0, 0.05, 0.5]))
                self.count("vanished")
            except OSError:
                time.sleep(0.2)

    def garbage(self):
        chosen = random.Random(7)
        while not self.is_over():
            time.sleep(0.1)
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                    connection.sendall(chosen.randbytes(chosen.choice([1, 100, 100000])))
                    connection.settimeout(1)
                    connection.recv(100)
                self.count("garbage")
            except OSError:
                pass

    def killer(self):
        """Kills the server twice, once with its end in sight."""
        length = self.until - time.monotonic()
        for part, number in ((1 / 3, signal.SIGKILL), (1 / 3, signal.SIGTERM)):
            time.sleep(length * part)
            print("the server ends with", self.server.end(number), flush=True)
            self.server = Server(self.program, self.dataset, self.options, self.port)

    def watcher(self):
        while not self.is_over():
            time.sleep(5)
            own, below = self.server.memory()
            self.peak = (max(own, self.peak[0]), max(below, self.peak[1]))

    def run(self):
        work = [self.honest] * 8 + [self.bomber] * 2 + [self.vanisher] * 2 + [self.garbage, self.killer, self.watcher]
        threads = [threading.Thread(target=one) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        own, below = self.server.memory()
        print(self.counts)
        print("longest wait %.1f s; memory at the end: server %.0f MB, runners %.0f MB; at most %.0f and %.0f MB" % (
            self.longest, own / 1e6, below / 1e6, self.peak[0] / 1e6, self.peak[1] / 1e6))
        print("ended with", self.server.end())
        print("wrong or lost: %d" % len(self.wrong))
        for one in self.wrong[:10]:
            print("  ", one)
        return bool(self.wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--without", action="append", default=[], choices=sorted(BOMBS), help="a bomb that others would feel")
    arguments, options = parser.parse_known_args()
    siege = Siege(arguments.program, arguments.dataset, options, arguments.minutes, arguments.without)
    sys.exit(siege.run())


if __name__ == "__main__":
    main()
