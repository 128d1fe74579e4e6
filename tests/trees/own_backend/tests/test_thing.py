from importlib.metadata import version

from thing import double


def test_is_installed():
    assert version("acme-thing") == "1"
    assert double(2) == 4
