import twice


def test_the_crate_was_compiled():
    assert twice.largest() == 2**65 - 2
