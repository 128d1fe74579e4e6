import alpha
def g(): return alpha.one() + 1
