"""Drives a runner over its two descriptors, as the Rust side does.

GISTMILL_TEST_PYTHON names another interpreter (with pytest installed) for the runner than the one that runs the tests.
"""

import json
import os
import select
import struct
import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).resolve().parent.parent / "gistmill_runner" / "__main__.py"
PYTHON = os.environ.get("GISTMILL_TEST_PYTHON", sys.executable)
TOKEN = "t0ken"


class Driver:
    """One runner process; `ask` sends a request and returns its answer."""

    def __init__(self, tree, python=PYTHON, prefix=(), isolation=None, output_bytes=1 << 20, environment=None, world=None):
        requests, self.requests = os.pipe()
        self._read, answers = os.pipe()
        inherited = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [*prefix, python, "-I", "-S", str(RUNNER), "--in-fd", str(requests), "--out-fd", str(answers)],
            cwd=tree,
            pass_fds=(requests, answers),
            start_new_session=True,
            env={**inherited, **(environment or {})},
        )
        os.close(requests)
        os.close(answers)
        self._buffer = b""
        self._next = 0
        self.greeting = self.ask(
            "hello", token=TOKEN, protocol=1, isolation=isolation, limits={"output_bytes": output_bytes}, world=world or {}
        )

    def send(self, operation, **fields):
        message = json.dumps({"op": operation, "id": self._next, **fields}).encode()
        self._next += 1
        os.write(self.requests, struct.pack(">I", len(message)) + message)
        return self._next - 1

    def receive(self, seconds=120):
        """The next answer; lines that are not the runner's are skipped."""
        while True:
            while b"\n" in self._buffer:
                line, self._buffer = self._buffer.split(b"\n", 1)
                words = line.split(b" ", 5)
                if len(words) == 6 and words[0] == b"@gistmill" and words[1] == TOKEN.encode():
                    if len(words[5]) == int(words[4]):
                        answer = {**json.loads(words[5].decode("ascii")), "id": int(words[2]), "type": words[3].decode("ascii")}
                        if answer["type"] != "collecting":
                            return whole(answer) if answer["type"] == "group_done" else answer
            assert select.select([self._read], [], [], seconds)[0], "no answer in time"
            part = os.read(self._read, 1 << 16)
            assert part, "the runner has gone"
            self._buffer += part

    def ask(self, operation, **fields):
        identifier = self.send(operation, **fields)
        answer = self.receive()
        assert answer["id"] == identifier
        return answer

    def open(self, file, trace="off", options=(), **fields):
        """Open the directory and the file; returns what `open_file` answered."""
        ready = self.ask("open_directory", file=file, options=list(options), trace=trace)
        assert ready["type"] == "directory_ready", ready
        return self.ask("open_file", file=file, **fields)

    def run(self, file_ready, function, **fields):
        """Run the group of one function; returns what `run` answered."""
        cases = [item["index"] for item in file_ready["items"] if item["function"] == function]
        assert cases, function
        return self.ask("run", items=cases, **{"case_timeout_ms": 10_000, "group_timeout_ms": 20_000, **fields})

    def stop(self):
        for descriptor in (self.requests, self._read):
            os.close(descriptor)
        self.process.wait(60)


def whole(done):
    """An attempt with the records of its report taken apart."""
    done.update(cases=[], pytest_exit=None, pytest_error=None, connections=[], internal=None)
    for kind, value in map(json.loads, (done["report"] or "").splitlines()):
        if kind == "case":
            done["cases"].append(value)
        elif kind == "end":
            done.update(value)
        else:
            done[kind] = value
    if done["exit"] == {"kind": "exited", "code": 0} and done["pytest_exit"] is not None:
        done["exit"] = {"kind": "finished"} if done["pytest_exit"] in (0, 1, 5) else {"kind": "exited", "code": done["pytest_exit"]}
    return done


def outcomes(done):
    return [case["outcome"] for case in done["cases"]]


def write_tree(root, files):
    """Write a tree of files from a mapping of paths to texts."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
