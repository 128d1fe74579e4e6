import six


def double(text):
    return 2 * six.text_type(text)
