from basket import count


def test_a():
    assert count(["a", "a "]) == {"a": 2}
