import demo_@WHAT@

import plain


def test_what_the_dependency_saw():
    print(demo_@WHAT@.SEEN)
    assert plain.value()
