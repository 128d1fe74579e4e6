"""A module without packaging: its folder is put on the path."""


class Tally:
    def __init__(self):
        self.counts = {}

    def add(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]


def total(tally):
    return sum(tally.counts.values())
