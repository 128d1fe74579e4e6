import plain


def test_zz_after():
    print(plain.value())
    assert plain.value()
