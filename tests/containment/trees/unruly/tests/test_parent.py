import os
import signal

import plain


def test_stops_its_parent():
    os.kill(os.getppid(), signal.SIGSTOP)
    assert plain.value()


def test_beside_it():
    assert plain.value()
