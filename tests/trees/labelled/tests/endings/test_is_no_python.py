from inventory import count


def test_is_never_seen()
    assert count("ab") == 2
