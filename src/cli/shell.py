"""Runs a command inside the sandbox for somebody at the other end of two pipes: input comes on descriptor 3, output goes to 4.

Input comes in pieces, each with its length in four bytes before it; a length of 0 is the end. Arguments: `pipe`, or the rows and
columns of a terminal that the command gets; then the command.
"""

import os
import sys
import threading


def pieces():
    with open(3, "rb", closefd=False) as source:
        while True:
            size = int.from_bytes(source.read(4), "big")
            piece = source.read(size)
            yield piece
            if not piece:
                return


def write(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]


def feed(descriptor, end):
    try:
        for piece in pieces():
            write(descriptor, piece or end)
        if not end:
            os.close(descriptor)
    except OSError:
        pass


def code_of(status):
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def start(command, prepare):
    process = os.fork()
    if process == 0:
        try:
            prepare()
            os.close(3)
            os.close(4)
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, ("%s: %s\n" % (command[0], error.strerror)).encode())
        finally:
            os._exit(127)
    return process


def in_terminal(size, command):
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def prepare():
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        for descriptor in (0, 1, 2):
            os.dup2(theirs, descriptor)
        os.close(ours)

    process = start(command, prepare)
    os.close(theirs)
    threading.Thread(target=feed, args=(ours, b"\x04"), daemon=True).start()
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            data = b""
        if not data:
            break
        write(4, data)
    return process


def in_pipe(command):
    theirs, ours = os.pipe()

    def prepare():
        os.dup2(theirs, 0)
        os.dup2(4, 1)
        os.dup2(4, 2)
        os.close(ours)

    process = start(command, prepare)
    os.close(theirs)
    threading.Thread(target=feed, args=(ours, b""), daemon=True).start()
    return process


def main(words):
    if words[0] == "pipe":
        process = in_pipe(words[1:])
    else:
        process = in_terminal((int(words[0]), int(words[1])), words[2:])
    return code_of(os.waitpid(process, 0)[1])


os._exit(main(sys.argv[1:]))
