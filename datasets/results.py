#!/usr/bin/env python3
"""Results of built datasets as text, and the page that is made of them. Needs polars.

    python datasets/results.py take output/paper/2026.11 --to datasets/paper    # after a build; other repositories there stay
    python datasets/results.py page                                             # writes docs/results.md
    python datasets/results.py page --check                                     # ends with 1 where it is not what it should be

Nothing of a repository's code is taken: names of tests, causes, numbers, locks.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results.md"
GROUPS = [
    "slug", "commit", "group_id", "state", "cause", "trace_length", "unique_files", "attempts", "flake_bound",
    "witness", "runs_1", "runs_3", "runs_10", "same_output", "variants", "mutants", "mutation_score", "needed_statements",
    "evidence",
]
REPOSITORIES = ["slug", "commit", "python", "groups", "kept", "published", "attempts", "seconds", "processor_seconds"]
SHOWN_CAUSES = 5
SHOWN_WEAK = 5
SHOWN_EVIDENCE = 3


def rows(table):
    return table.iter_rows(named=True)


def plain_runs(attempts):
    """What whoever repeats a test without changing anything would know of it.

    `attempts` are those of one group in the base world, in their order. For 1, 3 and 10 runs: whether all of the first so many
    passed (of a group that was run less often, those that there are); and whether all of them showed the same.
    """
    outcomes = [attempt["outcome"] for attempt in attempts]
    passed = {n: bool(outcomes) and all(one == "passed" for one in outcomes[:n]) for n in (1, 3, 10)}
    return passed, len({attempt["observation"] for attempt in attempts[:10]}) <= 1


def summary(evidence):
    """The first line of why a group was dropped; "" for one that was kept."""
    return (json.loads(evidence or "{}").get("summary") or "").partition("\n")[0]


def decimals(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def merge(path, head, rows):
    """Write a table with these rows in the place of all that it has of their repositories; its first column is the slug."""
    known = read(path) if path.exists() else []
    slugs = {row[0] for row in rows}
    kept = [[row.get(name, "") for name in head] for row in known if row["slug"] not in slugs]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(sorted([*kept, *rows], key=lambda row: (row[0], row[2])))


def spent_on(slug, manifest):
    """Seconds and processor seconds of the steps of one repository."""
    own = [one for one in manifest["spent"] if one["step"].startswith(f"{slug} ") and not one.get("beside")]
    return [round(sum(one[key] for one in own)) for key in ("seconds", "processor_seconds")]


def take(directory, target, with_times, builds):
    import polars

    directory, target = Path(directory), Path(target)
    manifest = json.loads((directory / "manifest.json").read_text())
    table = {name: polars.read_parquet(directory / f"{name}.parquet") for name in ("groups", "attempts", "instances")}
    base = {}
    for attempt in rows(table["attempts"].filter(polars.col("world") == "base").sort("slug", "group_id", "number")):
        base.setdefault((attempt["slug"], attempt["group_id"]), []).append(attempt)
    published = {(row["slug"], row["group_id"]): row for row in rows(table["instances"])}
    target.mkdir(parents=True, exist_ok=True)
    groups, repositories = [], []
    for group in rows(table["groups"]):
        key = (group["slug"], group["group_id"])
        instance = published.get(key, {})
        passed, same = plain_runs(base.get(key, []))
        state = "published" if group["published"] else "kept" if group["kept"] else "dropped"
        groups.append([
            key[0], manifest["sources"][key[0]]["commit"], key[1], state, group["cause"] or "",
            group["trace_length"], group["unique_files"], group["attempts"], decimals(instance.get("flake_bound"), 4),
            instance.get("witness") or "", *(int(passed[n]) for n in (1, 3, 10)), int(same),
            *(instance.get(name) for name in ("variants", "mutants")),
            *(decimals(instance.get(name), 3) for name in ("mutation_score", "needed_statements")),
            "" if group["kept"] else summary(group["evidence"]),
        ])
    spent = {}
    for build in [directory, *builds] if with_times else builds:
        made = json.loads((Path(build) / "manifest.json").read_text())
        spent.update({slug: spent_on(slug, made) for slug in made["counts"]["repositories"]})
    for slug, counts in manifest["counts"]["repositories"].items():
        repositories.append([
            slug, manifest["sources"][slug]["commit"], manifest["environments"][slug]["python"],
            counts["groups"], counts["kept"], counts["published"], counts["attempts"],
            *spent.get(slug, ["", ""]),
        ])
        lock = directory / manifest["environments"][slug]["directory"] / "requirements.lock"
        (target / f"{slug.replace('/', '__')}.lock").write_text(lock.read_text())
    merge(target / "groups.csv", GROUPS, groups)
    merge(target / "repositories.csv", REPOSITORIES, repositories)
    merge_top(target / "top.txt", directory, manifest["counts"]["repositories"])


def merge_top(path, directory, slugs):
    known = path.read_text().split() if path.exists() else []
    own = tuple(f"{slug.replace('/', '__')}." for slug in slugs)
    top = [json.loads(line)["instance_id"] for line in (directory / "subsets" / "top.jsonl").open()]
    path.write_text("".join(f"{one}\n" for one in [*(one for one in known if not one.startswith(own)), *top]))


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def table(head, lines):
    return ["| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] * len(head), *lines]]


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def funnel(groups):
    lines = []
    for slug in sorted({row["slug"] for row in groups}):
        own = [row for row in groups if row["slug"] == slug]
        kept = sum(row["state"] != "dropped" for row in own)
        causes = Counter(row["cause"] for row in own if row["cause"]).most_common(SHOWN_CAUSES)
        published = sum(row["state"] == "published" for row in own)
        words = ", ".join(f"{cause} {number}" for cause, number in causes)
        lines.append([slug, len(own), kept, share(kept, len(own)), published, words or "–"])
    return table(["repository", "groups", "kept", "share", "published", "most frequent causes of the others"], lines)


def repeats(groups):
    lines = []
    for slug in [*sorted({row["slug"] for row in groups}), None]:
        own = [row for row in groups if slug in (None, row["slug"])]
        number = {n: sum(row[f"runs_{n}"] == "1" for row in own) for n in (1, 3, 10)}
        same = sum(row["runs_10"] == "1" and row["same_output"] == "1" for row in own)
        kept = sum(row["state"] != "dropped" for row in own)
        lines.append([slug or "all", len(own), *number.values(), same, kept])
    head = ["repository", "groups", "pass in 1 run", "in up to 3", "in up to 10", "and show the same in all", "kept by gistmill"]
    return table(head, lines)


def beyond_runs(groups):
    only = [row for row in groups if row["runs_10"] == row["same_output"] == "1" and row["state"] == "dropped"]
    return table(["cause", "groups"], sorted(Counter(row["cause"] for row in only).items(), key=lambda one: (-one[1], one[0])))


def witnesses(groups):
    tried = [row for row in groups if row["state"] == "published" and row["witness"]]
    lines = sorted(Counter(row["witness"] for row in tried).items(), key=lambda one: (-one[1], one[0]))
    return table(["witness", "instances", "share"], [[name, number, share(number, len(tried))] for name, number in lines])


def evidence(groups):
    """Groups that all plain runs keep, one of each cause of a world at most, the first ones by their names."""
    lines, causes = [], set()
    for row in groups:
        if row["runs_10"] == "1" and row["same_output"] == "1" and row["cause"].startswith("depends-on-") and row["cause"] not in causes:
            causes.add(row["cause"])
            lines.append([row["slug"], f"`{row['group_id']}`", row["cause"], row.get("evidence", "").replace("|", "\\|")])
    return table(["repository", "group", "cause", "evidence"], lines[:SHOWN_EVIDENCE])


def median(values):
    values = sorted(values)
    return values[(len(values) - 1) // 2] if values else None


def strength(groups):
    lines = []
    for slug in sorted({row["slug"] for row in groups}):
        own = [row for row in groups if row["slug"] == slug and row["state"] == "published"]
        scores = [float(row["mutation_score"]) for row in own if row.get("mutation_score")]
        needed = [float(row["needed_statements"]) for row in own if row.get("needed_statements")]
        variants = [int(row["variants"]) for row in own if row.get("variants")]
        if not scores:
            continue
        lines.append([
            slug, len(own), median(variants), len(scores), f"{sum(scores) / len(scores):.2f}", f"{min(scores):.2f} to {max(scores):.2f}",
            f"{sum(needed) / len(needed):.2f}" if needed else "–",
        ])
    head = ["repository", "published", "variants (median)", "measured", "mean mutation score", "from, to", "needed statements"]
    return table(head, lines)


def weakest(groups):
    measured = sorted((row for row in groups if row.get("mutation_score")), key=lambda row: (float(row["mutation_score"]), row["group_id"]))
    lines = [[row["slug"], f"`{row['group_id']}`", row["mutants"], row["mutation_score"]] for row in measured[:SHOWN_WEAK]]
    return table(["repository", "group", "mutants", "mutation score"], lines)


def costs(repositories):
    lines = []
    for row in (one for one in repositories if one["seconds"]):
        per = float(row["processor_seconds"]) / max(int(row["published"]), 1)
        numbers = [row["seconds"], row["processor_seconds"], f"{per:.1f}"]
        lines.append([row["slug"], row["commit"][: 12 if len(row["commit"]) == 40 else 16], row["python"], row["attempts"], *numbers])
    head = ["repository", "commit", "Python", "attempts", "seconds", "processor seconds", "of those for each published instance"]
    return table(head, lines)


def refreshed(folder):
    """What `gistmill diff` said of the versions before and after `gistmill refresh`."""
    path = folder / "refresh.txt"
    return ["```text", *path.read_text().splitlines(), "```"] if path.exists() else []


def page():
    text = (HERE / "results.template.md").read_text()
    for folder in sorted(path.parent for path in HERE.glob("*/groups.csv")):
        groups, repositories = read(folder / "groups.csv"), read(folder / "repositories.csv")
        made = {
            "funnel": funnel(groups), "repeats": repeats(groups), "beyond": beyond_runs(groups),
            "witnesses": witnesses(groups), "costs": costs(repositories), "evidence": evidence(groups),
            "strength": strength(groups), "weakest": weakest(groups), "refresh": refreshed(folder),
        }
        for name, lines in made.items():
            text = text.replace(f"{{{{{folder.name}.{name}}}}}", "\n".join(lines))
    if "{{" in text:
        raise SystemExit(f"results.template.md names a table that no results make: {text[text.index('{{'):][:60]}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take", help="results of a built dataset as text")
    taking.add_argument("dataset")
    taking.add_argument("--to", required=True)
    taking.add_argument("--without-times", action="store_true", help="for a build that went on where another stopped")
    taking.add_argument("--times", action="append", default=[], metavar="DATASET", help="a build from nothing of some of the repositories")
    writing = commands.add_parser("page", help="docs/results.md")
    writing.add_argument("--check", action="store_true", help="write nothing; fail where it is another one")
    asked = parser.parse_args()
    if asked.command == "take":
        take(asked.dataset, asked.to, not asked.without_times, asked.times)
    elif asked.check:
        if not PAGE.exists() or PAGE.read_text() != page():
            print("docs/results.md is not what `python datasets/results.py page` writes", file=sys.stderr)
            raise SystemExit(1)
    else:
        PAGE.write_text(page())


if __name__ == "__main__":
    main()
