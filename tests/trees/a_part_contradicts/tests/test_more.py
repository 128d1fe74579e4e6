from acme_more import THING


def test_thing():
    assert THING == 1
