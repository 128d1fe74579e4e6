import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from driver import Driver, write_tree


@pytest.fixture
def start(tmp_path):
    """start(files) writes a tree and starts a runner in it; all runners are stopped afterwards."""
    drivers = []

    def begin(files, **options):
        tree = write_tree(tmp_path / ("tree%d" % len(drivers)), files)
        drivers.append(Driver(tree, **options))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.stop()
