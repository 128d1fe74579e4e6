import pytest

pytest.importorskip("colorama")

import asks


def test_stats():
    assert asks.plain() == 1
