"""Plays `gistmill serve --stdio`: what a submission says is what happens. The folder beside it notes what was seen."""

import json
import os
import sys
import time
from pathlib import Path

folder = Path(sys.argv[2])
starts = folder / "starts"
with starts.open("a") as file:
    file.write("%s\n" % os.getpid())
number = len(starts.read_text().splitlines())
if (folder / "never-ready").exists():
    sys.exit("no such dataset")


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


say({"status": "ready", "dataset": "made-up", "version": "1", "instances": 2, "queue": 8})
if (folder / "dies-when-ready").exists():
    sys.exit("no memory")
busy = set()
for line in sys.stdin:
    request = json.loads(line)
    text, number_of = request["submission"], request["id"]
    with (folder / "seen").open("a") as file:
        file.write("%d %s\n" % (number, text))
    answer = {"id": number_of, "instance_id": request["instance_id"], "status": "judged", "milliseconds": 3}
    if text == "dies once" and number == 1 or text == "always dies":
        sys.stdout.write('{"id": 1, "sta')
        sys.stdout.flush()
        os._exit(9)
    if text == "stops once" and number == 1:
        say({"id": number_of, "status": "stopping"})
        sys.exit(0)
    if text == "busy once" and number_of not in busy:
        busy.add(number_of)
        say({"id": number_of, "status": "busy", "message": "wait"})
    elif text in ("late", "unknown-instance", "bad-request", "lost"):
        say({**answer, "status": text, "message": "no"})
    elif text == "never":
        pass
    elif text == "without id":
        say({"id": None, "status": "bad-request", "message": "not a request"})
    else:
        if text == "noise":
            sys.stdout.write("\n[]\nnot json\n")
        row = {"instance_id": request["instance_id"], "fidelity": text != "wrong", "class": None, "trace_recall": 0.5}
        if text == "wrong":
            row.update({"class": "violation", "detail": "own-plugin", "violations": ["own-plugin"]})
        evidence = {"evidence": {"output": "said"}} if request["evidence"] else {}
        say({**answer, "known": False, "score": row, "deadline": request.get("deadline_seconds"), **evidence})
