"""Items that are no Python functions."""

import json

import pytest

from inventory import count


class Order(pytest.Item):
    def __init__(self, words, **settings):
        super().__init__(**settings)
        self.words = words

    def runtest(self):
        assert count(self.words) == 2


class Orders(pytest.File):
    def collect(self):
        for name, words in json.loads(self.path.read_text(encoding="utf-8")).items():
            yield Order.from_parent(self, name=name, words=words)


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".json" and file_path.name.startswith("test_"):
        return Orders.from_parent(parent, path=file_path)
