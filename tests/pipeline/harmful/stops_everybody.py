"""Stops every process that it can, and waits."""

import os
import signal
import time

for _process in filter(str.isdigit, os.listdir("/proc")):
    if int(_process) not in (1, os.getpid()):
        os.kill(int(_process), signal.SIGSTOP)
time.sleep(3600)
