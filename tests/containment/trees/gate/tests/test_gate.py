import builtins

import hashed
import iniconfig
import lazy
import plain


def test_says_what_the_source_says():
    print("plain", plain.value(), "hashed", hashed.value(), "lazy", lazy.value())
    assert plain.value()


def test_environment_is_as_installed():
    print("site", getattr(builtins, "POISON", "clean"), "iniconfig", getattr(iniconfig, "POISON", "clean"))
    assert plain.value()
