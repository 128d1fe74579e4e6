"""A library that pytest imports before it runs any test."""

import sys


class ParseError(Exception):
    """A line that cannot be read."""


class SectionWrapper(dict):
    """The values of a section."""


class IniConfig:
    """The sections of a file."""

    def __init__(self, path, data=None):
        if data is None:
            with open(path) as file:
                data = file.read()
        self.sections = {}
        for line in data.splitlines():
            self._add(line.strip())

    def _add(self, line):
        if line.startswith("["):
            self.sections[line.strip("[]")] = SectionWrapper()
        elif line:
            name, separator, value = line.partition("=")
            if not separator or not self.sections:
                raise ParseError(line)
            self.sections[list(self.sections)[-1]][name.strip()] = value.strip()

    def __contains__(self, name):
        return name in self.sections

    def __getitem__(self, name):
        return self.sections[name]


def main():
    config = IniConfig("", "\n".join(sys.argv[1:]))
    for name in sorted(config.sections):
        print(name, len(config[name]))


if __name__ == "__main__":
    main()
