"""Witnesses of commands: they begin at the main block."""

import re

import pytest
from driver import PYTHON
from generating import SUBMISSION, Made

TREE = {
    "shop/__init__.py": "'Sells. '\n",
    "shop/__main__.py": "import sys\nfrom .cli import main\n\nif __name__ == '__main__':\n    sys.exit(main())\n",
    "shop/cli.py": '''\
"""The command line."""
import argparse


def tables(given):
    from shop.stock import total
    print(total(given.what))


def never(given):
    print("never")


COMMANDS = {"tables": tables, "never": never}


def main(arguments=None):
    """Runs."""
    parser = argparse.ArgumentParser(prog="shop")
    parser.add_argument("command")
    parser.add_argument("what", nargs="*")
    given = parser.parse_args(arguments)
    if given.command == "fails":
        return 3
    COMMANDS[given.command](given)
    return 0
''',
    "shop/stock.py": "PRICES = {'tea': 3, 'milk': 2}\n\n\ndef total(names):\n    return sum(PRICES[name] for name in names)\n",
    "tools/report.py": '''\
import sys
import argparse

sys.path.insert(0, ".")

from shop.stock import total

NAMES = "tea milk".split()
parser = argparse.ArgumentParser()
parser.add_argument("times", type=int)
given = parser.parse_args()


def report(times):
    return total(NAMES) * times


for number in range(given.times):
    print(number, report(number))
''',
    "tools/about.py": '''\
"""Says what it is."""
import logging
import sys

sys.path.insert(0, ".")

from shop.speech import Speaker, log

logging.getLogger("shop").addHandler(logging.StreamHandler(sys.stdout))
logging.getLogger("shop").setLevel(logging.INFO)
log.info("from %s", log.name)
print(__doc__, Speaker.__doc__)
''',
    "tools/place.py": '''\
import os
import sys

sys.path.insert(0, ".")

from shop.place import root, said

print(os.path.basename(root()[1]), said(1))
''',
    "shop/place.py": '''\
import os

MARKS = {"in.txt": "data"}


def marked(folder):
    return [mark for name, mark in MARKS.items() if os.path.exists(os.path.join(folder, name))]


def root():
    folder = os.getcwd()
    if os.path.exists(os.path.join(folder, "shop")):
        return folder, "found"
    if marked(os.path.join(folder, "data")):
        return folder, "found"
    return None


def said(number):
    if number > 1:
        from shop.never import never
        return never()
    return "one"
''',
    "tools/named.py": '''\
import sys

sys.path.insert(0, ".")

from shop.plugins import ways, speak

print(ways[sys.argv[1]]("tea"), sorted(ways), speak(), speak("de") if len(sys.argv) > 2 else "")
''',
    "shop/plugins.py": '''\
import types
from importlib import import_module

LISTED = ("plain", "loud")
SPEECH = {"en": ("shop.parts.english", "English"), "de": ("shop.parts.german", "Deutsch")}
ways = {}
for name in LISTED:
    module = import_module("shop.parts." + name)
    assert isinstance(module, types.ModuleType)
    ways[module.NAME] = module.say
first = sorted(ways)[0]


def speak(language="en"):
    module = __import__(SPEECH[language][0], None, None, ["__all__"])
    return [first] + [getattr(module, name) for name in module.__all__] + list(letters(language))


def letters(text):
    at = 0
    while True:
        try:
            if text[at] == " ":
                at += 1
        except IndexError:
            break
        yield text[at]
        at += 1
''',
    "shop/parts/__init__.py": "",
    "shop/parts/plain.py": "NAME = 'plain'\n\n\ndef say(text):\n    return text\n",
    # All that it has is defined elsewhere.
    "shop/parts/loud/__init__.py": "from .voice import NAME as NAME, say as say\n",
    "shop/parts/loud/voice.py": "from importlib import import_module\n\nfrom shop.stock import PRICES\n\nINNER = [import_module('shop.parts.' + one).LOW for one in ('low',)]\nNAME = 'loud'\n\n\ndef say(text):\n    return text.upper(), PRICES, INNER\n",
    "shop/parts/low.py": "LOW = 'low'\n",
    "shop/parts/english.py": "__all__ = ['HELLO']\nHELLO = 'hello'\n",
    "shop/parts/german.py": "__all__ = ['HELLO']\nHELLO = 'hallo'\n",
    "tools/usage.py": "import sys\n\nsys.path.insert(0, '.')\n\nfrom shop.usage import usage\n\nprint(usage())\n",
    "shop/usage.py": '''\
"""Usage: shop
    [what] \\\\ 'quoted'
"""


from shop import __doc__ as of_package


def usage():
    first = of_package + __doc__.split()[0]
    return f"{first} {__doc__.strip()}"
''',
    "shop/speech.py": '''\
import logging

log = logging.getLogger(__name__)


class Speaker:
    """Speaks."""
''',
}


def entry(kind, *arguments, **command):
    return {"name": "a", "command": {"kind": kind, "arguments": list(arguments), **command}, "exit": 0}


def observed(done):
    return [(case["outcome"], case["status"], case["stdout"], case["stderr"]) for case in done["cases"]]


def make(start, entry):
    """The witness of a command, as the driver makes it."""
    runner = start(TREE, world={"entries": [entry]})
    done = runner.run(runner.open("entry", trace="lines"), "a")
    execution, expected = done["execution"], observed(done)
    submitted = {**entry, "command": {"kind": "script", "path": SUBMISSION, "arguments": entry["command"]["arguments"]}}
    generator = start(TREE)
    trials = start({"data/in.txt": "x"}, world={"entries": [submitted], "submission": SUBMISSION})
    assert trials.ask("open_directory", file="entry", options=[], trace="lines")["type"] == "directory_ready"
    assert generator.ask("open_generator")["type"] == "generator_ready"
    asked = {"execution": execution, "file": "entry", "classes": [], "function": "a", "submission": SUBMISSION}
    answer, tried = generator.ask("generate", command=entry["command"], **asked), []
    while answer["type"] == "candidate":
        tried.append(answer["text"])
        ready = trials.ask("open_file", file="entry", text=answer["text"])
        done = trials.run(ready, "a")
        agrees = observed(done) == expected
        failure = "\n".join((case.get("message") or "") + case["stderr"] for case in done["cases"])
        asked = re.findall(r"No module named '(shop[\w.]*)'", failure)
        if asked:
            failure = "it asks for %s (from %s)\n%s" % (asked[0], SUBMISSION, failure)
        ran = done["execution"]["files"].get(SUBMISSION, {"lines": [], "started": []})
        assert trials.ask("close")["type"] == "closed"
        answer = generator.ask(
            "tried", agrees=agrees, failure=failure, lines=[line for line, _ in ran["lines"]], started=ran["started"]
        )
    assert answer["type"] == "generated", answer
    return Made(answer, tried)


@pytest.mark.parametrize(
    "command",
    [
        entry("module", "tables", "tea", "milk", name="shop"),
        entry("code", "tea", text="import sys; from shop.stock import total; print(total(sys.argv[1:]))"),
    ],
)
def test_a_command_has_a_witness_without_the_repository(start, command):
    made = make(start, command)
    assert made.text is not None, made.said["failures"]
    assert "shop" not in made.text.replace('prog="shop"', "")
    assert "def total(names):" in made.text
    assert "never" not in made.text.replace('"never": never', "").replace("def never(given):", "")


def test_statements_of_a_main_block_keep_their_order_and_come_last(start):
    made = make(start, entry("script", "3", path="tools/report.py"))
    assert made.text is not None, made.said["failures"]
    places = [made.text.index(part) for part in ("def total", "def report", "ArgumentParser()", "add_argument", "parse_args", "for number")]
    assert places == sorted(places), made.text


def test_texts_that_a_command_prints_and_the_names_of_its_loggers_stay(start):
    made = make(start, entry("script", path="tools/about.py"))
    assert made.text is not None, made.said["failures"]
    assert made.text.startswith('"""Says what it is."""\n') and '"""Speaks."""' in made.text
    assert 'getLogger("shop.speech")' in made.text, made.text


def test_the_docstring_of_a_module_that_its_code_prints_is_there(start):
    made = make(start, entry("script", path="tools/usage.py"))
    assert made.text is not None, made.said["failures"]
    assert "shop_text = 'Sells. '\n" in made.text
    assert "shop_usage_text = \"Usage: shop\\n    [what]" in made.text and "{shop_usage_text.strip()}" in made.text, made.text


def test_a_way_that_only_the_tree_of_a_submission_makes_a_function_take_is_there(start):
    made = make(start, entry("script", path="tools/place.py"))
    assert made.text is not None, made.said["failures"]
    assert "def marked(folder):" in made.text and "never" not in made.text, made.text


def test_modules_that_are_imported_by_name_are_looked_up_by_it(start):
    made = make(start, entry("script", "loud", path="tools/named.py"))
    assert made.text is not None, (made.said["failures"], made.tried[-1])
    assert 'modules_by_name["shop.parts." + name]' in made.text and "modules_by_name[SPEECH[language][0]]" in made.text
    assert 'modules_by_name["shop.parts.english"] = types.ModuleType("shop.parts.english")\n' in made.text
    assert "import_module" not in made.text and "__import__" not in made.text and "hallo" not in made.text


def test_a_declared_script_is_what_it_calls(tmp_path):
    from gistmill_runner.witness import serving
    from gistmill_runner.witness.program import Program

    script = tmp_path / "bin" / "shop"
    script.parent.mkdir()
    script.write_text(
        "#!/venv/bin/python\nimport re\nimport sys\nfrom shop.cli import main\nif __name__ == '__main__':\n"
        "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n"
    )
    program = Program({})
    program.by_name["shop.cli"] = None
    before, serving.sys.executable = serving.sys.executable, str(script.parent / "python")
    try:
        text = serving.main_text({"kind": "console", "name": "shop"}, program)
        program.by_name.clear()
        with pytest.raises(ValueError, match="does not call a function of the tree"):
            serving.main_text({"kind": "console", "name": "shop"}, program)
    finally:
        serving.sys.executable = before
    assert text == "import sys\nfrom shop.cli import main\nsys.exit(main())\n"
    assert PYTHON
