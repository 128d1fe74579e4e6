import setsvars
def test_mode(): assert setsvars.mode() == "tested"
