import os

import changed
import hashed
import plain


def test_report():
    with open(os.path.join(os.path.dirname(plain.__file__), "report.txt")) as report:
        print(report.read())
    assert plain.value()


def test_says_what_the_source_says():
    print("plain", plain.value(), "hashed", hashed.value(), "changed", changed.value())
    assert plain.value()
