import beta
def f(): return beta.g() + 1
