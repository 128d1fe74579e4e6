from .core import load


def total(text):
    store = load(text)
    result = 0
    for key in store.values:
        result += store.get(key)
    return result


def biggest(text):
    store = load(text)
    return max(store.values.values())


def stub():
    ...
