from basket import count

tries = []


def test_the_second_time():
    tries.append("fig")
    assert count(tries) == {"fig": 2}
