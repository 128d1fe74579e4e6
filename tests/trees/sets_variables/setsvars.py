import os
def mode(): return os.environ["MODE"]
