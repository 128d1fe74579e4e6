import pytest

from inventory import root


@pytest.fixture
def checkout():
    return root()
