import sys

from shop.stock import price


def sum_of(path):
    with open(path) as file:
        return sum(price(line.strip()) for line in file)


if __name__ == "__main__":
    print(sum_of(sys.argv[1]))
