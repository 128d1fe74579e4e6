try:
    from importlib.resources import files
except ImportError:  # Python 3.8
    files = None

from pathlib import Path


def words():
    if files is None:
        text = (Path(__file__).parent / "data" / "words.txt").read_text()
    else:
        text = (files("pantry") / "data" / "words.txt").read_text()
    return text.split()
