import pytest

from .helper import priced


@pytest.fixture(params=["salt", "rice"])
def from_the_list(request):
    return priced(request.param)
