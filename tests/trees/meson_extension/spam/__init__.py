from spam import _spam


def answer():
    return _spam.answer()
