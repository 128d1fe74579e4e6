import pytest

from pantry import area


@pytest.fixture(scope="session")
def cellar():
    print("cellar opens")
    yield area(10, 10)
    print("cellar closes")


@pytest.fixture(scope="module")
def shelf(cellar):
    print("shelf up")
    yield [cellar]
    print("shelf down")


@pytest.fixture(scope="module", params=["tin", "jar"])
def container(request):
    print("takes the", request.param)
    yield request.param
    print("puts back the", request.param)


@pytest.fixture
def unit():
    yield area(1, 1)
