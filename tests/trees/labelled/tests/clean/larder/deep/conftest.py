import pytest


@pytest.fixture
def unit(unit):
    return unit + 5
