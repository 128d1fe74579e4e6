"""Reads every file of a dataset with the libraries that people use, and compares what they say.

usage: readers.py DATASET_DIR        needs: pip install pandas pyarrow polars duckdb datasets

Prints one JSON object: versions, and the rows of each file. An assertion names the reader and the file that differ.
"""

import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=tempfile.mkdtemp(prefix="hf-"))
os.environ.pop("HF_TOKEN", None)

import datasets  # noqa: E402  (the environment must be set before)
import duckdb  # noqa: E402
import pandas  # noqa: E402
import polars  # noqa: E402
import pyarrow.parquet  # noqa: E402

PLAIN = {"string", "int64", "double", "bool", "list<element: string>", "list<element: int64>"}


def plain(value):
    """A cell as JSON has it, whatever a library made of it."""
    if value is None:
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if value != value else value


def rows_of(frame):
    return [{name: plain(cell) for name, cell in row.items()} for row in frame.to_dict("records")]


def read(path):
    """The rows of a file, the same in every library."""
    table = pyarrow.parquet.read_table(path)
    odd = {str(field.type) for field in table.schema} - PLAIN
    assert not odd, f"{path.name}: pyarrow sees {sorted(odd)}"
    expected = [{name: plain(cell) for name, cell in row.items()} for row in table.to_pylist()]
    cursor = duckdb.sql(f"select * from read_parquet('{path}')")
    names = [column[0] for column in cursor.description]
    found = {
        "pandas": lambda: rows_of(pandas.read_parquet(path)),
        "pyarrow.to_pandas": lambda: rows_of(table.to_pandas()),
        "polars": lambda: polars.read_parquet(path).to_dicts(),
        "duckdb": lambda: [dict(zip(names, map(plain, row))) for row in cursor.fetchall()],
    }
    for reader, rows in found.items():
        got = rows()
        assert len(got) == len(expected), f"{path.name}: {reader} has {len(got)} rows of {len(expected)}"
        for at, (one, other) in enumerate(zip(got, expected)):
            assert one == other, f"{path.name}, row {at}: {reader} has {one} instead of {other}"
    return len(expected)


def load(directory, config, rows):
    """A config of the card, by the hub's loader."""
    loaded = datasets.load_dataset(str(directory), config, split="test")
    frame = loaded.to_pandas()
    assert len(frame) == rows, f"config {config}: {len(frame)} rows instead of {rows}"
    assert list(frame) == loaded.column_names, f"config {config}: {list(frame)}"


def main(directory):
    files = sorted(directory.glob("*.parquet")) + sorted(directory.glob("subsets/*.parquet"))
    rows = {str(path.relative_to(directory)): read(path) for path in files}
    configs = datasets.get_dataset_config_names(str(directory))
    by_config = {Path(name).stem: count for name, count in rows.items() if count}
    assert sorted(configs) == sorted(by_config), f"{sorted(configs)} instead of {sorted(by_config)}"
    for config in configs:
        load(directory, config, by_config[config])
    libraries = ["pandas", "pyarrow", "polars", "duckdb", "datasets"]
    print(json.dumps({"versions": {name: version(name) for name in libraries}, "rows": rows}))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
