"""The outer level."""

import pytest

from inventory import Item, Shelf


@pytest.fixture(scope="session")
def ledger():
    """Lives as long as the session, and has state."""
    entries = ["opened"]
    yield entries
    entries.append("closed")


@pytest.fixture
def shelf():
    return Shelf([Item("salt", 2), Item("rice", 3)])


@pytest.fixture
def unit():
    return 1
