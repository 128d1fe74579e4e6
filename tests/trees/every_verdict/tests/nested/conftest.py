import pytest

from pantry import area


@pytest.fixture
def unit(unit):
    return unit + area(1, 1)
