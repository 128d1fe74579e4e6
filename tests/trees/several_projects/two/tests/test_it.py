from acme_two import f
import importlib.metadata
def test_f(): assert f() == "two" and importlib.metadata.version("acme_two") == "1"
