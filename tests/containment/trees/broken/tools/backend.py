"""A build backend whose answer or whose wheel is not what the driver expects: `@MODE@` says how."""

import atexit
import json
import os
import sys
import zipfile

VICTIM = "@VICTIM@"
MODE = "@MODE@"
# Below what one file of a job may hold.
HUGE = 6 << 30
WHEEL = "broken-1-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: broken\nVersion: 1\n"
SCRIPT = "#!/bin/sh\necho script > %s/run-by-script\nexit 0\n" % VICTIM


def get_requires_for_build_editable(settings=None):
    return []


def files():
    info = "broken-1.dist-info/"
    metadata = METADATA
    if MODE == "name_with_controls":
        metadata = "Metadata-Version: 2.1\nName: br\x1b]0;owned\x07oken\nVersion: 1\n"
    if MODE == "name_with_dots":
        metadata = "Metadata-Version: 2.1\nName: ../../../broken\nVersion: 1\n"
    found = {
        "broken.pth": "/testbed\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info + "METADATA": metadata,
    }
    if MODE == "extras_with_lines":
        found[info + "METADATA"] += "Provides-Extra: a\rb\nProvides-Extra: x]\x0biniconfig==1.0\n"
    if MODE == "paths_that_leave":
        found["../" * 12 + VICTIM.lstrip("/") + "/written-by-a-wheel"] = "x"
        found["/" + VICTIM.lstrip("/") + "/written-by-a-wheel"] = "x"
    if MODE == "scripts_over_the_interpreter":
        for name in ("python", "python3", "pytest"):
            found["broken-1.data/scripts/" + name] = SCRIPT
    found[info + "RECORD"] = "".join(name + ",,\n" for name in found) + info + "RECORD,,\n"
    return found


def forged(**fields):
    answer = {"method": "editable", "wheel": WHEEL, "name": "broken", "version": "1", "extras": [], "metadata": METADATA}
    return json.dumps({**answer, **fields})


def instead(path):
    """Makes room for another thing at this path."""
    if os.path.lexists(path):
        os.unlink(path)
    return path


def spoil(folder, answer):
    wheel = os.path.join(folder, WHEEL)
    if MODE == "answer_is_a_link":
        os.symlink(VICTIM + "/answer.json", instead(answer))
    elif MODE == "answer_is_a_pipe":
        os.mkfifo(instead(answer))
    elif MODE == "answer_is_huge":
        os.truncate(answer, HUGE)
    elif MODE == "answer_is_deep":
        with open(answer, "w") as file:
            file.write("[" * 1000000)
    elif MODE == "wheel_is_a_link":
        os.symlink(VICTIM + "/wheel.whl", instead(wheel))
    elif MODE == "wheel_is_a_pipe":
        os.mkfifo(instead(wheel))
    elif MODE == "wheel_is_a_device":
        os.symlink("/dev/zero", instead(wheel))
    elif MODE == "wheel_is_huge":
        os.truncate(wheel, HUGE)
    elif MODE == "wheel_name_leaves":
        with open(answer, "w") as file:
            file.write(forged(wheel="../" * 12 + VICTIM.lstrip("/") + "/wheel.whl"))
    elif MODE == "wheel_name_has_lines":
        with open(answer, "w") as file:
            file.write(forged(wheel=WHEEL + "\niniconfig==1.0\n#"))
    elif MODE == "name_has_lines":
        with open(answer, "w") as file:
            file.write(forged(name="iniconfig==1.0\nbroken"))


def build_editable(folder, settings=None, metadata=None):
    with zipfile.ZipFile(os.path.join(folder, WHEEL), "w") as wheel:
        for inner, text in files().items():
            wheel.writestr(inner, text)
    atexit.register(spoil, folder, os.path.join(folder, "answer.json"))
    return WHEEL
