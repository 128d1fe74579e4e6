"""What the desk can do."""

import collections
import json


def add(numbers):
    return sum(int(number) for number in numbers)


def columns(path):
    with open(path) as file:
        for line in file:
            yield line.rstrip("\n").split(",")


def total(path, column):
    return sum(int(row[column]) for row in columns(path))


def words(text):
    counts = collections.Counter(text.split())
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def tree(text):
    depth, lines = 0, []
    for sign in text:
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        else:
            lines.append("  " * depth + sign)
    return "\n".join(lines)


def settings(path):
    with open(path) as file:
        return json.load(file)
