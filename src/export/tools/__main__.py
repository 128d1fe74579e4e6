"""Commands for who writes the one file of a task: edit and run it, see what its test calls, find names in the repository.

Standard library alone, Python 3.8 and newer. What is known of the task is in /opt/gistify/task.json. Nothing but the
command that checks the file is run, and only the file is written.
"""

import argparse
import json
import os
import sys
import warnings

from calls import trace
from common import Refused
from editing import CLOSES, DIVIDES, OPENS, replace, run, write
from names import definitions, references

TASK = "/opt/gistify/task.json"


def parser(task):
    """The commands that this task has."""
    top = argparse.ArgumentParser(prog="gistify", description="Commands for the task in %s." % task["workdir"])
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    runs = task["execution"] != "none"

    def add(function, text, **options):
        command = commands.add_parser(function.__name__, help=text, description=text, **options)
        command.set_defaults(function=function)
        return command

    if "edit" in task["tools"]:
        file = task["submission"]
        then = ", and runs it" if runs else ""
        form = "An edit is\n\n%s\nold lines\n%s\nnew lines\n%s\n" % (OPENS, DIVIDES, CLOSES)
        edits = [
            add(write, "standard input becomes %s%s" % (file, then)),
            add(replace, "edits %s by what comes by standard input%s" % (file, then), epilog=form,
                formatter_class=argparse.RawDescriptionHelpFormatter),
        ]  # fmt: skip
        for edit in edits if runs else []:
            edit.add_argument("--no-run", action="store_true", help="only edit")
        if runs:
            add(run, "runs the test of %s" % file)
    if "trace" in task["tools"]:
        calls = add(trace, "the functions that the test calls, in order; nothing is run")
        calls.add_argument("--file", metavar="GLOB", help="of these files alone, such as 'src/*'")
        calls.add_argument("--from", dest="start", metavar="N", type=positive, default=1, help="from this one on")
        calls.add_argument("--limit", metavar="N", type=positive, default=200, help="so many at most (200)")
    if "search" in task["tools"]:
        for function, text in [(definitions, "where a name is defined"), (references, "where a name is used")]:
            search = add(function, text)
            search.add_argument("name", metavar="NAME", help="such as run, App.run or package.module.App.run")
            search.add_argument("--limit", metavar="N", type=positive, default=50, help="so many at most (50)")
    return top


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main(arguments, place):
    # Not every locale has every character that a source can have.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.simplefilter("ignore")
    with open(place, encoding="utf-8") as file:
        task = json.load(file)
    asked = parser(task).parse_args(arguments)
    try:
        code = asked.function(task, asked)
        sys.stdout.flush()
    except Refused as reason:
        print("gistify: %s" % reason, file=sys.stderr)
        code = 2
    except BrokenPipeError:
        # Who read has seen enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ.get("GISTIFY_TASK", TASK)))
