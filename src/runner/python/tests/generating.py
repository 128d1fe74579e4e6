"""Makes witnesses of small trees as the driver does: traces in the tree, generates, and tries in a tree without it."""

import re

from driver import outcomes

SUBMISSION = "concise.py"


class Made:
    """What came of a search: the text, what the generator says, and how often it was tried."""

    def __init__(self, generated, tried):
        self.text = generated["text"]
        self.said = generated
        self.tried = tried


def executed(start, files, file, function):
    """What of the tree ran for a group, and what its cases showed."""
    runner = start(files)
    done = runner.run(runner.open(file, trace="lines"), function)
    assert set(outcomes(done)) == {"passed"}, done
    return done["execution"], observation(done)


def observation(done):
    return [(case["outcome"], case["stdout"]) for case in done["cases"]]


def make(start, files, file, function, classes=(), data=()):
    """The witness of a group; `data` are files that stay where it is tried."""
    execution, expected = executed(start, files, file, function)
    return search(start, files, execution, expected, file, function, classes, data)


def search(start, files, execution, expected, file, function, classes=(), data=()):
    """The witness of a group of which this ran."""
    generator, trials = start(files), start({SUBMISSION: "", **dict(data)})
    assert generator.ask("open_generator")["type"] == "generator_ready"
    ready = trials.ask("open_directory", file=SUBMISSION, options=[], trace="lines", preload=execution["others"])
    assert ready["type"] == "directory_ready"
    answer = generator.ask(
        "generate", execution=execution, file=file, classes=list(classes), function=function, submission=SUBMISSION
    )
    tried = []
    while answer["type"] == "candidate":
        tried.append(answer["text"])
        answer = generator.ask("tried", **trial(trials, answer["text"], function, expected))
    assert answer["type"] == "generated", answer
    return Made(answer, tried)


def trial(runner, text, function, expected):
    """What a text shows."""
    ready = runner.ask("open_file", file=SUBMISSION, text=text)
    assert ready["type"] == "file_ready", ready
    failure = "\n".join(error["text"] for error in ready["errors"])
    ran = {"lines": [], "started": []}
    agrees = False
    if any(item["function"] == function for item in ready["items"]):
        done = runner.run(ready, function)
        agrees = observation(done) == expected
        failure = "\n".join(case["message"] or "" for case in done["cases"])
        ran = done["execution"]["files"].get(SUBMISSION, ran)
    assert runner.ask("close")["type"] == "closed"
    asked = re.findall(r"No module named '(tiny[\w.]*)'", failure)
    if asked:
        failure = "it asks for %s\n%s" % (asked[0], failure)
    lines = [line for line, _ in ran["lines"]]
    return {"agrees": agrees, "failure": failure, "lines": lines, "started": ran["started"]}
