import pytest

from iniconfig import IniConfig, ParseError


def test_a_section_has_its_values():
    config = IniConfig("", "[one]\na = 1\nb = 2\n[two]\n")
    assert "two" in config
    assert config["one"] == {"a": "1", "b": "2"}


def test_a_value_without_a_section_is_refused():
    with pytest.raises(ParseError):
        IniConfig("", "a = 1\n")
