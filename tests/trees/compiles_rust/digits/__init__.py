from digits.native import LARGEST


def largest():
    return int(LARGEST)
