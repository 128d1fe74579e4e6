from acme_one import f
import importlib.metadata
def test_f(): assert f() == "one" and importlib.metadata.version("acme_one") == "1"
