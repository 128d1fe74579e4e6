"""Two packages deep."""

import pytest

from inventory import total

from .. import helper
from ..helper import labels


def test_imports_from_the_folder_above():
    assert labels() == ["<rice>", "<salt>"] and helper.PRICES


def test_uses_a_fixture_of_three_levels(unit):
    assert total([unit]) == 15


class TestInAClass:
    @pytest.fixture
    def unit(self, unit):
        return unit + 1

    def test_uses_a_fixture_of_four_levels(self, unit):
        assert total([unit]) == 16
