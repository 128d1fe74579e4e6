import root
def test_f(): assert root.f() == 3
