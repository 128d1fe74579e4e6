def double(number):
    """Twice as much.

    >>> double(2)
    4
    """
    return number * 2


async def later(number):
    return double(number)
