raise RuntimeError("this module cannot be imported")


def test_is_never_seen():
    pass
