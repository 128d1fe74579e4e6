import time


def wait(seconds):
    time.sleep(seconds)
    return seconds
