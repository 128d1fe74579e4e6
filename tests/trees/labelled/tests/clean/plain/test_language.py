"""Fixtures, marks and parts of the language that are harder to move than they look."""

from __future__ import annotations

import copy
import dataclasses
import decimal
import doctest
import enum
import functools
import inspect
import json
import pickle
import sys
import typing
import unittest
import unittest.mock

import pytest

import inventory
from inventory import Item, OutOfStock, Shelf, count, label, reserve, rounded, tax, total

STATE = []


@dataclasses.dataclass
class Order:
    """A class with annotations that are evaluated late, in the name space of its module."""

    item: Item
    amount: int = 1
    kind: typing.ClassVar[str] = "order"


class Colour(enum.Enum):
    RED = 1


class Point(typing.NamedTuple):
    x: int
    y: int


def test_prints_a_data_class():
    print(Order(Item("salt")), dataclasses.asdict(Order(Item("salt"), 2)), label("salt"))


def test_looks_at_late_annotations():
    assert typing.get_type_hints(Order)["item"] is Item
    assert [field.name for field in dataclasses.fields(Order)] == ["item", "amount"] and label("salt")


def test_prints_enumerations_and_tuples():
    print(repr(Colour.RED), Point(1, total([2])))


def test_pickles_classes_of_the_package():
    assert pickle.loads(pickle.dumps(Item("salt", 2))) == Item("salt", 2)
    print(count(pickle.dumps(Item("salt", 2), protocol=2)))


def test_pickles_classes_of_its_own():
    assert pickle.loads(pickle.dumps(Order(Item("salt")))) == Order(Item("salt"))


def test_copies_deeply():
    shelf = Shelf([Item("salt", 2)])
    assert copy.deepcopy(shelf).value() == shelf.value()


def test_reads_the_source_of_the_package():
    print(inspect.getsource(inventory.stock.label))
    assert label("salt")


def test_reads_its_own_source():
    assert "a line that only stands here" in inspect.getsource(test_reads_its_own_source) and label("salt")


def test_finds_itself_among_the_modules():
    assert sys.modules[__name__].STATE is STATE and label("salt")


def test_patches_itself_by_its_present_name():
    with unittest.mock.patch(__name__ + ".label", str.upper):
        assert label("salt") == "SALT"
    assert label("salt") == "<salt>"


def test_runs_examples_of_the_package():
    finder = doctest.DocTestFinder()
    tests = [test for test in finder.find(inventory.stock.label, "label", globs={"label": label}) if test.examples]
    assert [doctest.DocTestRunner().run(test).failed for test in tests] == [0]


def test_raises_a_chain():
    with pytest.raises(OutOfStock, match="salt") as caught:
        reserve({}, "salt", 1)
    assert isinstance(caught.value.__cause__, KeyError)
    print(repr(caught.value), repr(caught.value.__cause__))


@pytest.mark.parametrize("amount, left", [(1, 1), (2, 0)])
def test_takes(amount, left):
    assert reserve({"salt": 2}, "salt", amount) == left


def test_brings_its_own_decimal_context():
    with decimal.localcontext() as context:
        context.rounding = decimal.ROUND_UP
        print(rounded("1.001"), tax("100"))


def test_writes_json():
    print(json.dumps({label(name): count(name) for name in ("salt", "rice")}))


def test_remembers():
    label_of = functools.lru_cache(maxsize=None)(label)
    for _ in range(3):
        label_of("salt")
    print(label_of.cache_info())


def test_recurses_too_deeply():
    def deeper():
        return label(deeper())

    with pytest.raises(RecursionError):
        deeper()
    assert label("salt")


def test_changes_the_state_of_its_module():
    STATE.append(label("salt"))
    assert len(STATE) == 1


def test_sees_no_changed_state_of_its_module():
    STATE.append(label("salt"))
    assert len(STATE) == 1


# fixtures


@pytest.fixture(scope="module")
def open_shelf(ledger):
    print("the shelf is put up", label("shelf"))
    yield Shelf()
    print("the shelf is taken down")


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_fills_a_shelf(open_shelf, name):
    open_shelf.add(Item(name))
    print(len(open_shelf), open_shelf.items)


def test_gets_an_empty_shelf(open_shelf):
    assert len(open_shelf) == 0


def test_reads_the_ledger(ledger):
    ledger.append(label("salt"))
    print(ledger)


@pytest.mark.parametrize("time", [1, 2, 3])
def test_takes_stamps(stamps, ledger, time):
    print(next(stamps), ledger, label("stamp"))


def test_makes_a_fixture_when_it_runs(request):
    assert request.getfixturevalue("shelf").value() == 5


def test_adds_a_finalizer(request, shelf):
    request.addfinalizer(lambda: print("closed", len(shelf)))
    assert shelf.take("salt").price == 2


@pytest.mark.shop(name="corner")
def test_reads_its_marks(request):
    print(request.node.get_closest_marker("shop").kwargs, label("shop"))


@pytest.mark.usefixtures("jar")
class TestJar:
    def test_has_a_jar(self):
        assert self.jar.price == total([2, 3])

    class TestInside:
        def test_has_a_shelf(self, shelf):
            assert shelf.value() == 5


class TestInOrder:
    seen = []

    def setup_method(self, method):
        self.seen.append(method.__name__)

    @pytest.mark.parametrize("number", [1, 2])
    def test_counts(self, number):
        assert count(self.seen) == number


# marks


@pytest.mark.xfail(reason="wrong about that")
def test_passes_against_expectation():
    assert count("ab") == 2


@pytest.mark.parametrize("name", ["salt", pytest.param("rice", marks=pytest.mark.xfail), pytest.param("beans", marks=pytest.mark.skip)])
def test_passes_beside_skipped_and_expected_failures(name):
    assert label(name) == "<salt>"


@pytest.mark.skipif(sys.platform == "win32", reason="made for others")
def test_is_not_skipped_on_this_platform():
    assert label("salt")


@pytest.mark.xfail(sys.version_info < (3, 6), reason="too old")
def test_is_not_expected_to_fail_on_this_python():
    assert label("salt")


# unittest


class InUnittest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shelf = Shelf([Item("salt", 2)])
        cls.addClassCleanup(print, "closed")

    def setUp(self):
        self.shelf.add(Item("rice", 3))

    def tearDown(self):
        self.shelf.take("rice")

    def test_counts(self):
        self.assertEqual(len(self.shelf), 2)

    def test_sums(self):
        for left in (0, 1):
            with self.subTest(left=left):
                self.assertEqual(total([left, 5 - left]), self.shelf.value())
