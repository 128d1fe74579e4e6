"""Imports that are made once for many texts."""

from driver import outcomes

FILES = {
    "concise.py": "",
    "lib/__init__.py": "",
    "lib/first.py": "from lib import inner\n",
    "lib/inner.py": "import time\nTIME = time.perf_counter()\n",
    "lib/second.py": "",
    "broken.py": "import lib.second\nraise ImportError('no')\n",
    "reaches.py": "try:\n    import tiny\nexcept ImportError:\n    pass\n",
    "warns.py": "import warnings\nwarnings.warn('old', DeprecationWarning)\n",
}

SEES = '''\
import sys
print([name for name in sys.modules if name.partition(".")[0] == "lib"])
import lib
print(hasattr(lib, "first"), hasattr(lib, "second"))
import lib.first
print(lib.first.__spec__.loader.__class__.__name__, lib.first.__loader__.__class__.__name__, hasattr(lib, "second"))
print([name for name in sys.modules if name.partition(".")[0] == "lib"])
SEEN = lib.inner.TIME

def test_a():
    import lib.second
    print(lib.second is sys.modules["lib.second"], SEEN)
'''


def opened(start, preload, world=None, files=(), **more):
    runner = start({**FILES, **dict(files)}, world=world)
    ready = runner.ask("open_directory", file="concise.py", options=[], trace="off", preload=preload)
    assert ready["type"] == "directory_ready", ready
    return runner


def ran(runner, text, function="test_a"):
    ready = runner.ask("open_file", file="concise.py", text=text)
    assert ready["type"] == "file_ready", ready
    done = runner.run(ready, function) if ready["items"] else None
    runner.ask("close")
    return ready, done


def printed(runner, text):
    """What the case prints, with what the import printed by way of a name."""
    text = "import builtins as _b\n_said = []\nprint = lambda *words: _said.append(' '.join(map(str, words)))\n" + text
    _, done = ran(runner, text + "\n    _b.print('\\n'.join(_said))\n")
    assert outcomes(done) == ["passed"], done
    return done["cases"][0]["stdout"].splitlines()


def test_a_text_sees_the_modules_that_it_has_imported_and_no_others(start):
    fresh = printed(opened(start, []), SEES)
    runner = opened(start, ["lib.first", "lib.second"])
    first, second = printed(runner, SEES), printed(runner, SEES)
    *said, last = fresh
    assert said == ["[]", "False False", "SourceFileLoader SourceFileLoader False", "['lib', 'lib.inner', 'lib.first']"]
    assert first[:-1] == said and second[:-1] == said
    assert last.startswith("True ") and first[-1] == second[-1] != last, "imported once, and given twice"


def test_out_of_order_it_is_there_with_what_comes_before(start):
    text = "import lib.second\n\ndef test_a():\n    print(lib.first.inner.TIME > 0, lib.second.__name__)\n"
    _, done = ran(opened(start, ["lib.first", "lib.second"]), text)
    assert done["cases"][0]["stdout"] == "True lib.second\n"


def test_what_cannot_be_imported_is_for_the_text_to_meet(start):
    runner = opened(start, ["broken", "lib.first"], world={"watched": ["tiny"]})
    ready, done = ran(runner, "import broken\n\ndef test_a(): pass\n")
    assert done is None and "ImportError: no" in ready["errors"][0]["text"]
    _, done = ran(runner, "import lib.first\n\ndef test_a(): pass\n")
    assert outcomes(done) == ["passed"]


def test_attempts_to_import_are_told_by_the_text_that_leads_to_them(start):
    runner = opened(start, ["json.tool", "reaches"], world={"watched": ["tiny"]})
    ready, _ = ran(runner, "def test_a(): pass\n")
    assert ready["import_attempts"] == []
    ready, _ = ran(runner, "import reaches\n\ndef test_a(): pass\n")
    (seen,) = ready["import_attempts"]
    assert seen["module"] == "tiny" and seen["file"].endswith("/reaches.py")


def test_warnings_are_errors_where_pytest_is_told_so(start):
    files = {"pytest.ini": "[pytest]\nfilterwarnings = error\n"}
    for preload in ([], ["warns"]):
        ready, done = ran(opened(start, preload, files=files), "import warns\n\ndef test_a(): pass\n")
        assert done is None and "DeprecationWarning: old" in ready["errors"][0]["text"], preload
    _, done = ran(opened(start, ["warns"]), "import warns\n\ndef test_a(): pass\n")
    assert outcomes(done) == ["passed"]
