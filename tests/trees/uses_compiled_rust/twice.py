import digits


def largest():
    return 2 * digits.largest()
