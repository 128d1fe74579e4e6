from service.app import f
def test_f(): assert f()
