"""What the test of the task calls, as a traced run saw it. Nothing is run."""

import fnmatch

from common import FUNCTIONS, Refused, count, first_line, parse, read, say, show, walk


def trace(task, asked):
    """The repository's functions that the test calls, in the order of their first calls. Nothing is run."""
    calls = list(enumerate(task["trace"], 1))
    if asked.file:
        calls = [one for one in calls if fnmatch.fnmatchcase(one[1]["file"], asked.file)]
    if not asked.file and asked.start == 1 and task["import_files"]:
        say("while the test's file is imported, these run:")
        show(["  " + file for file in task["import_files"]], asked.limit)
    calls = [one for one in calls if one[0] >= asked.start]
    say("%s, in the order of first calls:" % count(len(calls), "function"))
    ends = {}
    lines = []
    for order, call in calls[: asked.limit]:
        if call["file"] not in ends:
            ends[call["file"]] = last_lines(task["workdir"], call["file"])
        last = ends[call["file"]].get((call["line"], call["function"].split(".")[-1]))
        place = "%s:%d" % (call["file"], call["line"]) + ("-%d" % last if last else "")
        lines.append("%5d  %s  %s  %s" % (order, place, call["function"], count(call["calls"], "call")))
    show(lines, asked.limit)
    if len(calls) > asked.limit:
        say("… and %d more: --from %d" % (len(calls) - asked.limit, calls[asked.limit][0]))
    return 0


def last_lines(root, path):
    """Where the functions of a file end, by their first line and name; nothing where that cannot be told."""
    try:
        nodes = [node for node, _ in walk(parse(read(root, path))) if isinstance(node, FUNCTIONS)]
    except Refused:
        return {}
    return {(first_line(node), node.name): node.end_lineno for node in nodes}
