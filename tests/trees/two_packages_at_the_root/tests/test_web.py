from web import page


def test_page():
    assert page("a") == "<h1>a</h1>"
