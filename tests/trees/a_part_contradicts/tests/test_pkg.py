from pkg import double


def test_double():
    assert double("a") == "aa"
