from inventory import count

raise RuntimeError("no test of this file is ever seen")


def test_is_never_seen():
    assert count("ab") == 2
