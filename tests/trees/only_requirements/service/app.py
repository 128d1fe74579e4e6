import itsdangerous
def f(): return itsdangerous.Signer("k").sign("x")
