def area(width, height):
    return width * height


def factorial(number):
    return 1 if number < 2 else number * factorial(number - 1)


def steps(limit):
    number = 0
    while number < limit:
        yield number
        number += 1


class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return area(self.side, self.side)
