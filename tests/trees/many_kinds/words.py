# coding: shift_jis
def fruit(x):
    """実"""
    return x + "実"
