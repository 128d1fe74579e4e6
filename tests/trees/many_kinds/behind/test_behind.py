from basket import count


def test_behind():
    assert count(["b"]) == {"b": 1}
