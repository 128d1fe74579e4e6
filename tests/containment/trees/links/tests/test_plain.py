import plain


def test_value():
    print(plain.value())
    assert plain.value()
