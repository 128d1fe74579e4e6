"""What judging masked files costs: milliseconds of `gistmill score` for one instance, against a cold run of pytest of the same
cases; and the share of the gates in the build.

    python bench/recube.py GISTMILL DATASET [--cache-dir DIR] [--runs N]

Each instance is handed in N times, the original with another comment at its end. The cold run is one pytest of all groups of
an instance in the same sandbox (`gistmill shell`), less what that command takes for `true`. What is left of it without starting
Python and importing pytest is the least that any judge does: it imports the file and what needs it anew, collects, and runs. All is
measured one after the other.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time


def seconds(words):
    started = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - started


def original(dataset, one):
    archive = dataset / "trees" / (one["slug"].replace("/", "__") + ".tar.zst")
    for name in (one["target"], "./" + one["target"]):
        found = subprocess.run(["tar", "--zstd", "-xOf", str(archive), name], capture_output=True)
        if found.returncode == 0:
            return found.stdout
    raise SystemExit("%s does not have %s" % (archive, one["target"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gistmill")
    parser.add_argument("dataset", type=pathlib.Path)
    parser.add_argument("--cache-dir")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    gistmill = [asked.gistmill] + (["--cache-dir", asked.cache_dir] if asked.cache_dir else [])
    rows = [json.loads(line) for line in (asked.dataset / "instances.jsonl").read_text().splitlines()]
    texts = {one["instance_id"]: original(asked.dataset, one) for one in rows}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)

        def score(numbers):
            runs = []
            for number in numbers:
                for id, text in texts.items():
                    folder = work / ("run-%d" % number) / id
                    folder.mkdir(parents=True)
                    (folder / "target.py").write_bytes(text + b"\n# run %d of %d\n" % (number, time.time_ns()))
                runs.append(str(work / ("run-%d" % number)))
            return seconds(gistmill + ["score", str(asked.dataset), *runs, "--output", str(work / "scores")])

        first = score([0])
        ran = score(range(1, asked.runs + 1))
        each = 1000 * ran / asked.runs / len(rows)
        print("score: %.0f ms an instance, over %d runs of %d (the first run of all: %.1f s)"
              % (each, asked.runs, len(rows), first))
    cold, least = 0.0, 0.0
    for one in rows:
        groups = one["entry_command"].split(" pytest ", 1)[1]
        group = groups.split()[0].strip("'")
        inside = gistmill + ["shell", str(asked.dataset), "--instance", group, "--only", one["slug"], "--"]
        empty = seconds(inside + ["true"])
        whole = seconds(inside + ["sh", "-c", one["entry_command"] + " -q || true"])
        start = seconds(inside + ["python", "-c", "import pytest"])
        cold, least = cold + 1000 * (whole - empty) / len(rows), least + 1000 * (whole - start) / len(rows)
        print("cold: %.0f ms for %d cases of %s" % (1000 * (whole - empty), one["n_cases"], one["target"]))
    print("a judgement takes %.2f of a cold run (%.0f ms); without Python and pytest that is %.2f of itself"
          % (each / cold, cold, least / cold))
    spent = json.loads((asked.dataset / "manifest.json").read_text())["spent"]
    whole = sum(step["seconds"] for step in spent if not step.get("beside"))
    gates = sum(step["seconds"] for step in spent if step["step"].endswith(" gates"))
    print("gates: %.1f s of the %.1f s of the last build, %.0f %%" % (gates, whole, 100 * gates / whole if whole else 0))


main()
