import pytest

from inventory import count

pytest.skip("the whole file", allow_module_level=True)


def test_is_never_seen():
    assert count("ab") == 2
