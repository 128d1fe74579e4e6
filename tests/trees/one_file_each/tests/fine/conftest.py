import pytest


@pytest.fixture
def books():
    return 4
