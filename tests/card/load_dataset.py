"""Loads every config of a dataset directory with Hugging Face `datasets`, offline, and counts its rows.

usage: load_dataset.py DATASET_DIR        needs: pip install datasets

Prints one JSON object, config to number of rows; exits with an assertion's message when the card does not hold.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=tempfile.mkdtemp(prefix="hf-"))
os.environ.pop("HF_TOKEN", None)

import datasets  # noqa: E402  (the environment must be set before)


def main(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    expected = {name: rows for name, rows in manifest["counts"]["rows"].items() if rows}
    expected.update({name: one["size"] for name, one in manifest["subsets"].items() if one["size"]})
    configs = datasets.get_dataset_config_names(str(directory))
    assert sorted(configs) == sorted(expected), f"{sorted(configs)} instead of {sorted(expected)}"
    loaded = {}
    for config in configs:
        found = datasets.load_dataset(str(directory), config)
        assert list(found) == ["test"], f"{config}: splits {list(found)}"
        loaded[config] = len(found["test"])
        assert loaded[config] == expected[config], f"{config}: {loaded[config]} rows instead of {expected[config]}"
    default = datasets.load_dataset(str(directory), split="test")
    rows = [json.loads(line) for line in (directory / "instances.jsonl").read_text().splitlines()]
    assert default["instance_id"][:] == [row["instance_id"] for row in rows], "the default config is `instances`"
    assert default.column_names == list(rows[0]), "columns and keys are the same"
    assert default[0] == rows[0], "a row is the same in Parquet and in JSON"
    print(json.dumps(loaded))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
