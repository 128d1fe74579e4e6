"""The inner level of conftest files: overrides a fixture of the outer one, and adds some that every test gets."""

import pytest

from inventory import Item


@pytest.fixture
def unit(unit):
    return unit * 10


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setenv("INVENTORY_QUIET", "yes")


@pytest.fixture(scope="session")
def stamps(ledger):
    ledger.append("stamped")
    yield iter(range(1, 100))


@pytest.fixture(scope="class")
def jar(request):
    request.cls.jar = Item("jar", 5)


@pytest.fixture
def item(request):
    return Item(request.param, len(request.param))
