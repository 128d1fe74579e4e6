import alpha, iniconfig
def test_one(): assert alpha.one() == 1
