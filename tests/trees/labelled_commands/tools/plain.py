print("nothing of the desk")
