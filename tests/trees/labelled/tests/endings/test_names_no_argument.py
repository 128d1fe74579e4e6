import pytest

from inventory import count


@pytest.mark.parametrize("shelves", [1, 2])
def test_is_never_seen():
    assert count("ab") == 2
