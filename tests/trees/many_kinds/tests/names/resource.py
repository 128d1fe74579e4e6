def load(text):
    return text.split()
