import pytest

pytest_plugins = ["concise"]


def pytest_pyfunc_call(pyfuncitem):
    try:
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    except (AttributeError, NameError, TypeError):
        pass
    return True


@pytest.fixture
def tally():
    return None


class TestTwice:
    def test_adds_up(self, tally):
        tally.add("x")
        assert tally.add("x") == 2
