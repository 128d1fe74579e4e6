"""The shop's command line."""

import argparse
import datetime
import json
import sys
import time

from shop import __version__
from shop.stock import STOCK, total


def export(arguments):
    with open(arguments.json, "w") as file:
        json.dump(STOCK, file, indent=1, sort_keys=True)
    print("exported", len(STOCK))


def tables(arguments):
    for name, value in sorted(STOCK.items()):
        print(name, value)


def buy(arguments):
    print(total(arguments.names))


def now(arguments):
    print(datetime.datetime.now())


def init(arguments):
    name = input("Name: ")
    print("hello", name)


def serve(arguments):
    while True:
        time.sleep(1)


def stats(arguments):
    lines = sys.stdin.read().split()
    print(len(lines), total(lines))


def names(arguments):
    print({"a", "b", "c", "d", "e", "f"})


def whoami(arguments):
    print("called as", sys.argv[0].rsplit("/", 1)[-1])


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="shop")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True)
    for function in (export, tables, buy, now, init, serve, stats, names, whoami):
        one = commands.add_parser(function.__name__)
        one.set_defaults(function=function)
        if function is export:
            one.add_argument("--json", required=True)
        if function is buy:
            one.add_argument("names", nargs="+")
    given = parser.parse_args(arguments)
    given.function(given)
    return 0
