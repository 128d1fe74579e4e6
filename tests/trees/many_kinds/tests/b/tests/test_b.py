from basket import count


def test_b():
    assert count(["b", "b "]) == {"b": 2}
