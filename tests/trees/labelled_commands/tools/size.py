import sys

from desk.work import add

with open(sys.argv[1]) as file:
    print(add([len(file.read())]))
