import os

import pantry
import pytest
from pantry import area

ODD = ["a b", "[x]", "a::b", "two\nlines", "naïve ☕", "", "a/b.py", "-k", "'quoted' \"twice\"", "x" * 300, "back\\slash"]


@pytest.mark.parametrize("text", ODD)
def test_odd_ids(text):
    assert area(1, len(text)) == len(text)


@pytest.mark.parametrize("path", [os.path.join(os.path.dirname(os.path.dirname(pantry.__file__)), "shelf")])
def test_machine_path(path):
    assert area(1, 1) == 1
