from basket import count


async def slowly(items):
    return count(items)


def test_in_the_loop(run):
    assert run(slowly(["Fig", "fig"])) == {"fig": 2}
