"""Writes the file of the task, and runs its test."""

import os
import select
import shlex
import signal
import subprocess
import sys
import time

from common import Refused, say

# Bytes of a run's output that are shown.
LONGEST_OUTPUT = 30000
OPENS, DIVIDES, CLOSES = "<<<<<<<", "=======", ">>>>>>>"


def write(task, asked):
    """The text of standard input becomes the file."""
    text = sys.stdin.buffer.read()
    if not text.strip():
        raise Refused("no text came by standard input; nothing was changed")
    return save(task, asked, text)


def replace(task, asked):
    """Lines of the file become others; each edit's old lines stand in it exactly once."""
    name = task["submission"]
    edits = parse_edits(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"))
    try:
        with open(os.path.join(task["workdir"], name), "rb") as file:
            lines = file.read().decode("utf-8", "surrogateescape").split("\n")
    except FileNotFoundError:
        raise Refused("there is no %s yet: `gistify write` makes it" % name)
    for number, (old, new) in enumerate(edits, 1):
        places = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        if len(places) != 1:
            what = "the old lines of edit %d stand %d times in %s" % (number, len(places), name)
            raise Refused(what + ", not once; nothing was changed")
        lines[places[0] : places[0] + len(old)] = new
    return save(task, asked, "\n".join(lines).encode("utf-8", "surrogateescape"))


def parse_edits(text):
    """Pairs of old and new lines."""
    edits, old, new, divided = [], None, None, False
    for line in text.split("\n"):
        if old is None:
            if line.startswith(OPENS):
                old, new, divided = [], [], False
            elif line.strip():
                raise Refused("%r stands outside of an edit, which begins with %s" % (line, OPENS))
        elif line == DIVIDES:
            if divided:
                raise Refused("an edit has %s twice; `gistify write` takes the whole file" % DIVIDES)
            divided = True
        elif line.startswith(CLOSES):
            if not old or not divided:
                raise Refused("an edit has no %s" % (DIVIDES if old else "old lines"))
            edits.append((old, new))
            old = None
        else:
            (new if divided else old).append(line)
    if old is not None or not edits:
        raise Refused("an edit is %s, the old lines, %s, the new lines, %s" % (OPENS, DIVIDES, CLOSES))
    return edits


def save(task, asked, text):
    with open(os.path.join(task["workdir"], task["submission"]), "wb") as file:
        file.write(text)
    say("%s: %d lines" % (task["submission"], len(text.splitlines())))
    if task["execution"] == "none" or asked.no_run:
        return 0
    return run(task, asked)


def run(task, _asked):
    """Runs the command on the file, and shows what it prints."""
    if not os.path.isfile(os.path.join(task["workdir"], task["submission"])):
        raise Refused("there is no %s yet: `gistify write` makes it" % task["submission"])
    say("$ " + " ".join(shlex.quote(word) for word in task["check"]))
    environment = dict(os.environ, **task["variables"])
    environment["PYTEST_ADDOPTS"] = " ".join(task["options"])
    try:
        process = subprocess.Popen(
            task["check"], cwd=task["workdir"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise Refused("%s cannot be started: %s" % (task["check"][0], error))
    try:
        output, in_time = follow(process, task["seconds"])
    finally:
        end(process)
    print(output, end="" if not output or output.endswith("\n") else "\n")
    if not in_time:
        say("stopped after %d seconds" % task["seconds"])
        return 124
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    say("exit %d" % code)
    return code


def follow(process, seconds):
    """What it prints, without the middle where that is long, and whether it came to its end in time."""
    deadline = time.monotonic() + seconds
    pipe, half = process.stdout.fileno(), LONGEST_OUTPUT // 2
    head, tail, total, is_open = b"", b"", 0, True
    while True:
        ended, left = process.poll() is not None, deadline - time.monotonic()
        if left <= 0:
            break
        # Who outlives the command and holds its pipe is not waited for.
        wait = 0 if ended else min(left, 0.1)
        if is_open and select.select([pipe], [], [], wait)[0]:
            data = os.read(pipe, 1 << 16)
            is_open, total = bool(data), total + len(data)
            room = half - len(head)
            head, tail = head + data[:room], (tail + data[room:])[-half:]
        elif ended:
            break
        elif not is_open:
            time.sleep(wait)
    middle = total - len(head) - len(tail)
    words = b"\n[... %d bytes left out ...]\n" % middle if middle else b""
    return (head + words + tail).decode("utf-8", "replace"), ended


def end(process):
    """Ends it and what it left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    process.stdout.close()
