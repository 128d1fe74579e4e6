import beta, pytest
@pytest.mark.m
def test_g(): assert beta.g() == 2
