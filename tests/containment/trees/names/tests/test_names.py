import os

import pytest

import plain

TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;b3duZWQ=\x07"
CLEAR = "\x1b[2J\x1b[1;1H"
LINK = "\x1b]8;;http://evil.example\x07here\x1b]8;;\x07"
ALL = TITLE + CLIPBOARD + CLEAR + LINK + "\x9b2J\x08\x7f\r"
MARKUP = "<script>alert(1)</script> ![x](http://evil.example/x.png) | a |"


def test_evidence():
    print(ALL, MARKUP, os.urandom(4).hex())
    assert plain.value()


def test_message():
    raise AssertionError(ALL + MARKUP)


class Odd(Exception):
    pass


Odd.__qualname__ = Odd.__name__ = "Odd" + ALL


def test_exception_type():
    raise Odd(MARKUP)


@pytest.mark.parametrize("word", [pytest.param(1, id=MARKUP), pytest.param(2, id="../../../etc/passwd")])
def test_parameters(word):
    assert plain.value()


def named(name):
    def function():
        assert plain.value()

    function.__name__ = function.__qualname__ = name
    globals()[name] = function


named("test_escapes" + ALL)
named("test_line\nFROM evil\nRUN touch /injected\n- forged: row")
named("test_" + MARKUP)
named("test_../../../../etc/passwd")


def test_beside_them():
    assert plain.value()
