"""The desk's command line: one function for each subcommand, which gets its words."""

import datetime
import getpass
import os
import random
import shutil
import socket
import sys
import time
import uuid

from . import __version__, work


def add(*numbers):
    print(work.add(numbers))


def upper(text):
    print(text.upper())


def column(path, number):
    print("total", work.total(path, int(number)))


def words():
    for word, times in work.words(sys.stdin.read()):
        print(times, word)


def tree(text):
    print(work.tree(text))


def greet():
    print("hello", work.settings("data/settings.json")["name"])


def fixed():
    print(work.add([20, 22]))


def export(path):
    with open(path, "w") as file:
        for row in sorted(work.columns("data/stock.csv")):
            file.write(" ".join(row) + "\n")
    print("exported")


def silent(path, number):
    with open(path, "w") as file:
        file.write("%d\n" % work.add([number, 1]))


def append(text):
    with open("data/log.txt", "a") as file:
        file.write(text + "\n")
    print(work.add([len(text)]))


def remove(path):
    os.remove(path)
    print("removed", work.add([len(path)]))


def rename(path, other):
    os.rename(path, other)
    print("renamed to", other, work.add([1]))


def folders(name):
    os.makedirs(os.path.join(name, "deep"))
    print(work.add([len(name)]))


def executable(path):
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(path, 0o755)
    print(work.add([1]))


def link(path):
    os.symlink("data/stock.csv", path)
    print(work.add([1]))


def binary(path, number):
    with open(path, "wb") as file:
        file.write(bytes([0, 255, work.add([number])]))


def leaves(status):
    print("leaving", work.add([status]))
    sys.exit(int(status))


def complains(number):
    print("bad number", work.add([number]), file=sys.stderr)
    return 4


def raises(key):
    {"a": work.add([1])}[key]


def deep():
    return deep()


def now():
    print(datetime.datetime.now(), work.add([1]))


def today():
    print(datetime.date.today(), work.add([1]))


def zone():
    print(time.strftime("%H:%M", time.localtime(work.add([0]))))


def columns():
    print(shutil.get_terminal_size().columns, work.add([1]))


def home():
    print(len(os.path.expanduser("~")), work.add([1]))


def user():
    print(getpass.getuser(), work.add([1]))


def place():
    print(len(os.getcwd()), work.add([1]))


def here():
    print(os.path.join(os.getcwd(), "data"), work.add([1]))


def names():
    print({"red", "green", "blue", "black", "white"}, work.add([1]))


def draw():
    print(random.random(), work.add([1]))


def identity():
    print(uuid.uuid4(), work.add([1]))


def memory():
    print("at 0x%x" % id(object()), work.add([1]))


def ask():
    print("hello", input("Name: "), work.add([1]))


def terminal():
    with open("/dev/tty") as file:
        print(file.read(1), work.add([1]))


def interactive():
    print(sys.stdin.isatty(), sys.stdout.isatty(), work.add([1]))


def forever():
    while work.add([1]):
        time.sleep(0.1)


def connect():
    work.add([1])
    socket.create_connection(("example.org", 80), timeout=2)


def crash():
    work.add([1])
    os.kill(os.getpid(), 11)


def called():
    print(os.path.basename(sys.argv[0]), work.add([1]))


def variable():
    print(os.environ.get("DESK_MODE", "none"), work.add([1]))


def child():
    work.add([1])
    sys.stdout.flush()
    os.system("echo from a child")


def late():
    import atexit

    atexit.register(print, "at the end", work.add([1]))
    print("first")


COMMANDS = {name: value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__}


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--help"]:
        print("usage: desk COMMAND\n\ncommands: " + " ".join(sorted(COMMANDS)))
        return 0
    if arguments == ["--version"]:
        print("desk", __version__)
        return 0
    if not arguments or arguments[0] not in COMMANDS:
        print("desk: no such command; see desk --help", file=sys.stderr)
        return 2
    return COMMANDS[arguments[0]](*arguments[1:])


def plain():
    """Always the help."""
    return main(["--help"])
