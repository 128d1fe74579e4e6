"""Which options keep a plugin from disturbing, without the plugin being installed."""

from types import SimpleNamespace

from gistmill_runner import disruptive


def decide(plugin, addopts=(), inicfg=None, **option):
    registered = object()
    distribution = SimpleNamespace(version="1.2")
    manager = SimpleNamespace(
        hasplugin=lambda name: name == plugin,
        get_plugin=lambda name: registered,
        list_plugin_distinfo=lambda: [(registered, distribution)],
    )
    parser = SimpleNamespace(parse=lambda arguments: SimpleNamespace(file_or_dir=[]))
    config = SimpleNamespace(
        _parser=parser, pluginmanager=manager, getini=lambda name: list(addopts), option=SimpleNamespace(**option), inicfg=inicfg or {}
    )
    (found,) = disruptive.switched_off(config)
    assert found["version"] == "1.2"
    return found["options"]


def test_plugin_whose_options_are_not_in_use_is_left_out():
    assert decide("randomly") == ["-p", "no:randomly"]
    assert decide("rerunfailures") == ["-p", "no:rerunfailures"]


def test_plugin_whose_options_are_in_use_must_keep_parsing_them():
    assert "--randomly-dont-reorganize" in decide("randomly", ["--randomly-seed=1"])
    assert decide("rerunfailures", ["--reruns", "2"]) == ["--reruns=0"]
    assert decide("rerunfailures", strict_markers=True) == ["--reruns=0"]
    assert decide("rerunfailures", force_reruns=None) == ["--force-reruns=0"]
    assert decide("xdist", ["-n", "auto"]) == ["-n0", "--dist=no"]
    assert decide("pytest_cov", ["--cov=x"]) == ["--no-cov"]


def test_option_that_nothing_takes_back_is_cut_from_addopts():
    assert decide("pytest_forked", ["--forked", "-k", "a b"]) == ["-o", "addopts=-k 'a b'"]
    assert decide("pytest_forked") == []


def test_plugin_that_tries_again_is_left_out_unless_its_words_must_be_known():
    for plugin, option in (("pytest-retry", "--retries=2"), ("flaky", "--force-flaky")):
        assert decide(plugin) == ["-p", "no:" + plugin]
        assert decide(plugin, [option]) == decide(plugin, strict_markers=True) == decide(plugin, inicfg={"strict": "true"}) == []
    assert decide("pytest-retry", inicfg={"retries": "3"}) == []
