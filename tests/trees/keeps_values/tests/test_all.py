import pytest
from pkg import Store, load
from pkg.api import biggest, total
from pkg.core import _check


def test_load():
    assert load('{"a": 1}').get("a") == 1

def test_total():
    assert total('{"a": 1, "b": 2}') == 3

def test_biggest():
    assert biggest('{"a": 1, "b": 2}') == 2

def test_private():
    with pytest.raises(ValueError):
        _check("")

def test_swallows():
    try:
        _check("")
    except Exception:
        pass

@pytest.mark.parametrize("value", [1, 2])
def test_put(value):
    store = Store()
    store.put("a", value)
    assert store.get("a") == value
    assert store.get("b", 3) == 3

def test_empty():
    assert Store().get("x") is None
