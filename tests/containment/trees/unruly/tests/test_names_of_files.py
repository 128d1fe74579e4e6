import importlib.util
import os

import plain

FOLDER = os.path.dirname(os.path.abspath(__file__))


def test_calls_into_a_file_whose_name_is_no_text():
    path = os.path.join(FOLDER, os.fsdecode(b"helper_\xff.py"))
    specification = importlib.util.spec_from_file_location("helper", path)
    helper = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(helper)
    assert helper.value() == "odd"
    assert plain.value()


def test_beside_it():
    assert plain.value()
