import sys

sys.path.insert(0, "src")

from desk.work import add, columns

for row in columns(sys.argv[1]):
    print("%-6s %s" % (row[0], add(row[1:])))
