import filtering
def test_f(): assert filtering.f() == 1
