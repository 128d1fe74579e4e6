import plain


def test_before():
    print(plain.value())
    assert plain.value()
