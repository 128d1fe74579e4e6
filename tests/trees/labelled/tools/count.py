"""Counts the words of a file: `python tools/count.py FILE`."""

import sys

from inventory import count

if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as file:
        print(count(file.read().split()))
