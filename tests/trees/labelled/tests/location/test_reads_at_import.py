"""The whole file needs to be imported where the checkout is."""

from inventory import count

with open("inventory/data/words.txt", encoding="ascii") as words:
    WORDS = words.read().split()


def test_counts_words():
    assert count(WORDS) == 3


class TestWords:
    def test_counts_letters(self):
        assert count(WORDS[0]) == 4
