def test_is_never_run():
    pass
