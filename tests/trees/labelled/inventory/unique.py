"""Sets of names, in whatever order they come."""

import hashlib


def distinct(names):
    """The different names, in the order of a set."""
    return list(set(names))


def first(names):
    """One of the names."""
    return next(iter(frozenset(names)))


def bucket(name, buckets):
    """The number of the bucket that a name belongs into."""
    return hash(name) % buckets


def fingerprint(text):
    """The same for equal texts, always."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
