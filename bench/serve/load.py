"""What the benchmark and the soak share: a server, submissions of known judgement, and clients over HTTP."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

# What ends or floods whatever runs it; each is judged wrong, whatever it does.
BOMBS = {
    "memory": "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n",
    "forks": "import os\nwhile True:\n    os.fork()\n",
    "prints": "while True:\n    print('x' * 100000)\n",
    "hangs": "while True:\n    pass\n",
    "sleeps": "import time\ntime.sleep(3600)\n",
    "kills": "import os\nos.kill(-1, 9)\n",
    "exits": "import os\nos._exit(0)\n",
    "deep": "x = " + "(" * 50000 + ")" * 50000 + "\n",
    "not-python": "def f(:\n",
    "null": "x = '\x00'\n",
}


class Server:
    """`gistmill serve` at a port of its own."""

    def __init__(self, program, dataset, options, port=0):
        command = [program, "serve", str(dataset), "--listen", "127.0.0.1:%d" % port, "--format", "json", "--quiet"]
        self.process = subprocess.Popen(command + options, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("gistmill serve ends with %s" % self.process.wait())
        self.port = int(json.loads(line)["address"].rsplit(":", 1)[1])

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait()

    def memory(self):
        """Bytes that the server, and all processes below it, hold of their own."""
        own, below = 0, 0
        for process in [self.process.pid] + descendants(self.process.pid):
            try:
                text = Path("/proc/%d/smaps_rollup" % process).read_text()
            except OSError:
                continue
            held = sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))
            if process == self.process.pid:
                own = held
            else:
                below += held
        return own, below


def descendants(process):
    found = []
    for task in Path("/proc/%d/task" % process).glob("*/children"):
        try:
            for child in map(int, task.read_text().split()):
                found += [child] + descendants(child)
        except OSError:
            pass
    return found


def ask(port, instance, text, timeout=900, connection=None):
    """The status of HTTP, and the answer."""
    own = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    body = json.dumps({"instance_id": instance, "submission": text})
    own.request("POST", "/score", body, {"Content-Type": "application/json"})
    answer = own.getresponse()
    result = answer.status, json.loads(answer.read())
    if connection is None:
        own.close()
    return result


def witnesses(dataset):
    folder = Path(dataset) / "witnesses"
    return [(path.stem, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.py"))]


class Mix:
    """Submissions as a policy makes them, each with whether it is right; none where nobody knows before. The share `broken` of
    them is not Python, for which nothing is run."""

    def __init__(self, dataset, seed, broken=0.0):
        self.random = random.Random(seed)
        self.broken = broken
        self.witnesses = witnesses(dataset)
        self.lock = threading.Lock()
        self.tag = "%d-%d" % (time.time_ns(), os.getpid())
        self.number = 0

    def next(self):
        with self.lock:
            self.number += 1
            number, kind = self.number, self.random.random()
            instance, text = self.random.choice(self.witnesses)
            line = self.random.randrange(len(text.splitlines()))
            broken = self.random.random() < self.broken
        comment = "\n# %s %d\n" % (self.tag, number)
        if broken:
            return instance, BOMBS["not-python"] + comment, False
        if kind < 0.5:
            return instance, text + comment, True
        if kind < 0.8:
            lines = text.splitlines()
            return instance, "\n".join(lines[:line] + lines[line + 1 :]) + comment, None
        if kind < 0.9:
            return instance, text.replace("1", "2", 1) + comment, None
        return instance, "def test():\n    pass\n" + comment, False
