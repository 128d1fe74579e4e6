from .core import Store, load
