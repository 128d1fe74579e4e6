import demand_extra
def test_f(): assert demand_extra.f() == 5
