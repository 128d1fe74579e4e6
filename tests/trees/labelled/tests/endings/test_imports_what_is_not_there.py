import inventory.cellar


def test_is_never_seen():
    assert inventory.cellar
