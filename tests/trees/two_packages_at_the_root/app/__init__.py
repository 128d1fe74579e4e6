import six


def name(text):
    return six.ensure_str(text)
