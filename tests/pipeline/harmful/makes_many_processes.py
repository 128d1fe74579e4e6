"""More processes than a job may have, and not many more, so that the machine goes on."""

import os
import signal
import time

for _ in range(1200):
    try:
        if os.fork() == 0:
            signal.pause()
    except OSError:
        break
time.sleep(3600)
