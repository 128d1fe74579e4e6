import shopping
from inventory import count, total
from shopping import basket


def test_imports_a_sibling():
    assert count(basket("salt", "rice")) == 2


def test_imports_inside():
    import shopping as again

    assert again is shopping and total([1]) == 1


def test_replaces_a_name_in_a_sibling(monkeypatch):
    monkeypatch.setattr(shopping, "Item", str)
    assert basket("salt") == ["salt"] and total([1]) == 1


def test_replaces_a_name_in_a_sibling_by_its_name(monkeypatch):
    monkeypatch.setattr("shopping.Item", str.upper)
    assert basket("salt") == ["SALT"] and total([1]) == 1
