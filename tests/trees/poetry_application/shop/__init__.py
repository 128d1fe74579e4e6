import six


def price(pieces):
    return six.text_type(3 * pieces)
