try:
    import itsdangerous
except ImportError:
    itsdangerous = None


def sign():
    assert itsdangerous is not None, "The `itsdangerous` library must be installed to use signing."
    return plain()


def plain():
    return 1
