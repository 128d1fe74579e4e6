from inventory import count

assert count("ab") == 3, "the world is not as this file expects it"


class TestNothing:
    def test_is_never_seen(self):
        assert count("ab") == 2
