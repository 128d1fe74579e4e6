import spam


def test_answer():
    assert spam.answer() == 42
