def f(): return "two"
