"""Plugins that would change which tests run, how often, in which order or in which process, and how to keep them from it.

The options named here go where PYTEST_ADDOPTS would be, so they win over what ``addopts`` of the repository says and
must not make those fail to parse: a plugin whose options are in use cannot simply be left out with ``-p no:…``.
"""

import os
import shlex


def _blocked(name, used, instead, reason):
    """Leave the plugin out, or give `instead` where its own options are in use."""
    return (instead if used else ["-p", "no:" + name]), reason


def _xdist(config, used):
    return ["-n0", "--dist=no"], "distributes tests over processes"


def _randomly(config, used):
    instead = ["--randomly-dont-reorganize", "--randomly-dont-reset-seed"]
    return _blocked("randomly", used, instead, "shuffles tests and reseeds random generators")


def _random_order(config, used):
    return _blocked("random_order", used, ["--random-order-bucket=none"], "shuffles tests")


def _is_strict(config):
    """Whether a marker that no plugin declares is an error."""
    options = ("strict_markers", "strict")
    return any(getattr(config.option, name, False) or config.inicfg.get(name) for name in options)


def _tries_again(name):
    """Leave out a plugin that runs failed tests again. Where its marker or its options must stay known, it stays: what counts
    is how the first try ended (`again`)."""

    def decide(config, used):
        known = used or _is_strict(config) or any(key in config.inicfg for key in ("retries", "retry_delay", "retry_outcome"))
        return _blocked(name, known, [], "runs failed tests again")

    return decide


def _rerunfailures(config, used):
    if hasattr(config.option, "force_reruns"):
        return ["--force-reruns=0"], "runs failed tests again, marked ones included"
    if used or _is_strict(config):
        return ["--reruns=0"], "runs failed tests again; tests marked flaky still are, because the marker must stay known"
    return ["-p", "no:rerunfailures"], "runs failed tests again"


def _repeat(config, used):
    return ["--count=1"], "repeats tests as extra cases"


def _flakefinder(config, used):
    return ["--flake-runs=1"] if used else [], "repeats tests as extra cases"


def _benchmark(config, used):
    return ["--benchmark-disable"], "repeats test bodies for timing"


def _cov(config, used):
    return ["--no-cov"], "traces every line and writes into the tree"


def _forked(config, used):
    return _without_addopts(config, used, "--forked"), "runs every test in a process of its own"


def _testmon(config, used):
    return ["--no-testmon"], "leaves out tests that earlier runs make look unaffected"


def _parallel(config, used):
    return ["--parallel-threads=1"], "runs test bodies in several threads"


def _sugar(config, used):
    return _blocked("sugar", used, [], "writes to standard output on its own")


def _without_addopts(config, used, option):
    """Give ``addopts`` again without an option that nothing can take back."""
    return _addopts([argument for argument in fit_for_one(config) if argument != option]) if used else []


def _addopts(arguments):
    return ["-o", "addopts=" + " ".join(map(shlex.quote, arguments))]


def fit_for_one(config):
    """``addopts`` without the files and folders that it names, which the entry command would run beside its test, and without
    what switches off the report that cold runs are read from."""
    parse, kept = config._parser.parse, _with_report(list(config.getini("addopts")))
    named = list(parse(kept).file_or_dir)
    for index in reversed(range(len(kept))):
        if kept[index] in named:
            try:
                left = list(parse(kept[:index] + kept[index + 1 :]).file_or_dir)
            except BaseException:
                continue  # the value of an option
            if len(left) < len(named):
                kept, named = kept[:index] + kept[index + 1 :], left
    return kept


def _with_report(arguments):
    kept = []
    for argument in arguments:
        if argument == "no:junitxml" and kept[-1:] == ["-p"]:
            kept.pop()
        elif argument != "-pno:junitxml":
            kept.append(argument)
    return kept


# (plugin, names under which it registers, beginnings of its options, what to do about it)
_TABLE = (
    ("xdist", ("xdist",), ("-n", "--dist", "--numprocesses", "--maxprocesses", "--tx"), _xdist),
    ("randomly", ("randomly",), ("--randomly",), _randomly),
    ("random-order", ("random_order",), ("--random-order",), _random_order),
    ("rerunfailures", ("rerunfailures",), ("--reruns", "--only-rerun", "--rerun-except", "--force-reruns"), _rerunfailures),
    ("retry", ("pytest-retry", "pytest_retry"), ("--retries", "--retry", "--cumulative-timing"), _tries_again("pytest-retry")),
    ("flaky", ("flaky",), ("--force-flaky", "--max-runs", "--min-passes", "--no-flaky", "--no-success-flaky"), _tries_again("flaky")),
    ("repeat", ("repeat", "pytest_repeat"), ("--count", "--repeat-scope"), _repeat),
    ("flakefinder", ("flakefinder",), ("--flake",), _flakefinder),
    ("benchmark", ("benchmark",), ("--benchmark",), _benchmark),
    ("cov", ("pytest_cov",), ("--cov", "--no-cov"), _cov),
    ("forked", ("pytest_forked",), ("--forked",), _forked),
    ("testmon", ("testmon",), ("--testmon",), _testmon),
    ("run-parallel", ("run-parallel", "pytest_run_parallel"), ("--parallel-threads", "--iterations"), _parallel),
    ("sugar", ("sugar",), ("--old-summary", "--force-sugar"), _sugar),
)


def collect_in_this_process(config):
    """Keep pytest-xdist from handing the collection to workers."""
    if hasattr(config.option, "dist"):
        config.option.dist = "no"
        config.option.tx = []
        config.option.numprocesses = None


def switched_off(config):
    """The disruptive plugins that are active, each with the options that keep it from disturbing, and why it would."""
    manager = config.pluginmanager
    in_use = list(config.getini("addopts")) + shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    versions = {}
    for plugin, distribution in manager.list_plugin_distinfo():
        versions[plugin] = distribution.version
    found = []
    alone = fit_for_one(config)
    if alone != list(config.getini("addopts")):
        reason = "names files, which every entry command would run, or switches the report off"
        found.append({"plugin": "addopts", "version": None, "options": _addopts(alone), "reason": reason})
    for plugin, names, prefixes, decide in _TABLE:
        registered = next((manager.get_plugin(name) for name in names if manager.hasplugin(name)), None)
        if registered is None:
            continue
        used = any(argument.startswith(prefixes) for argument in in_use)
        options, reason = decide(config, used)
        found.append({"plugin": plugin, "version": versions.get(registered), "options": options, "reason": reason})
    return found
