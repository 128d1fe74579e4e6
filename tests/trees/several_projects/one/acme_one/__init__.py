def f(): return "one"
