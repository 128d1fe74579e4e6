# vim: set fileencoding=euc_jp :
from words import fruit


def test_japanese(capsys):
    print(fruit("あ"))
    assert fruit("あ") == "あ実"
