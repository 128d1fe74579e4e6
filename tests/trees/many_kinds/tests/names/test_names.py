import resource

from basket import count


def test_own_module():
    assert count(resource.load("fig FIG")) == {"fig": 2}
