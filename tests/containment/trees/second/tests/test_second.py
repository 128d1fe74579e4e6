import glob
import os
import sysconfig

import iniconfig
import pluggy

import plain


def test_installed_is_what_the_index_has():
    poisoned = []
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")):
        for path in glob.glob(folder + "/**/*.py*", recursive=True):
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                if b"POI" + b"SON OF A DEPENDENCY" in file.read():
                    poisoned.append(path)
    names = sorted(path.rsplit("/", 2)[-1] for path in poisoned)
    print(getattr(pluggy, "POISON", "clean"), getattr(iniconfig, "POISON", "clean"), names)
    assert plain.value()
