from inventory import label


def twice(name):
    return label(name) * 2
