def value():
    return "pinned"
