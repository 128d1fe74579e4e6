"""Text for people."""

import argparse
import shutil
import textwrap

STORY = "Salt, rice and beans stand on the upper shelf, tins and jars on the lower one, and the ladder leans beside them."


def wrapped(text=STORY, width=None):
    """As wide as the terminal, or as told."""
    return textwrap.fill(text, width or shutil.get_terminal_size().columns)


def table(rows, width=None):
    """Names to the left, numbers to the right."""
    width = width or shutil.get_terminal_size().columns
    return "\n".join("%s%*d" % (name, width - len(name), number) for name, number in rows)


def parser(**settings):
    parser = argparse.ArgumentParser(prog="inventory", description=STORY, **settings)
    parser.add_argument("--shelf", help="the shelf to look at, from the door to the window, counted from one")
    parser.add_argument("--verbose", action="store_true", help="say more about every item than anybody wants to know")
    return parser
