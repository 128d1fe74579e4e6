"""Puts calls into the record of the trace that no code made."""

import gc
import itertools

import plain


def forge(file, calls):
    for tracer in [one for one in gc.get_objects() if type(one).__name__ == "Tracer" and hasattr(one, "functions")]:
        for known in list(tracer.functions.values())[:1]:
            for number in range(2):
                made = type(known)(known.code, file)
                made.counter, made.unstarted = itertools.count(calls), itertools.count()
                tracer.functions["%s %d" % (file, number)] = made


def test_names_a_pipe_of_the_host():
    assert plain.value()
    forge("@VICTIM@/pipe", 1)


def test_names_a_file_of_the_host():
    assert plain.value()
    forge("@VICTIM@/home/secret", 1)


def test_names_a_file_above_the_tree():
    assert plain.value()
    forge("../" * 20 + "dev/zero", 1)


def test_counts_more_than_fits():
    assert plain.value()
    forge("plain.py", 2**64 - 1)


def test_beside_them():
    assert plain.value()
