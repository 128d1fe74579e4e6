"""Settings of pytest that name modules which are watched."""

import sys

from gistmill_runner.watch import ImportWatcher


class Config:
    def __init__(self):
        self.filters = ["error", "ignore::shop.warnings.Loud", "ignore::DeprecationWarning"]

    def getini(self, name):
        assert name == "filterwarnings"
        return self.filters


class Manager:
    def __init__(self, config):
        self.config = config

    def import_plugin(self, name):
        return name

    def get_plugin(self, name):
        return self.config

    def set_blocked(self, name):
        raise AssertionError(name)


def test_what_a_plugin_adds_to_the_filters_of_warnings_stays():
    config = Config()
    manager, watcher = Manager(config), ImportWatcher(["shop"])
    try:
        watcher.hide_from(manager)
        # As `addinivalue_line` of pytest does.
        config.getini("filterwarnings").append("ignore:added")
        assert config.getini("filterwarnings") == ["error", "ignore::DeprecationWarning", "ignore:added"]
        assert [manager.import_plugin(name) for name in ("shop.plugin", "other")] == [None, "other"]
    finally:
        sys.meta_path.remove(watcher)
    assert [one["module"] for one in watcher.taken()] == ["shop.warnings.Loud", "shop.plugin"]
