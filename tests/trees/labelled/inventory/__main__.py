import sys

from inventory.stock import count


def main(arguments=None):
    words = sys.argv[1:] if arguments is None else arguments
    print(count(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
