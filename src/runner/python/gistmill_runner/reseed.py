"""Fresh entropy for each fork, as a cold process would have it, unless the repository seeded a generator itself.

``random`` reseeds itself in every forked child, so the work there is to keep a seed that repository code set. The
legacy generator of numpy does not, so it gets new entropy while it still runs on entropy from its import.
"""

import random
import sys

_Random = random.Random
_getstate = random.getstate
_setstate = random.setstate
_seed = random.seed
_BLOCK_WORDS = 624
_BLOCKS_FOLLOWED = 64


class Reseed:
    """What is known about the generators of this process."""

    def __init__(self):
        _seed()
        self.entropy_state = _getstate()

    def before_fork(self):
        """The state of ``random`` that the child has to keep, or None when the child should have fresh entropy."""
        state = _getstate()
        if _follows(self.entropy_state, state):
            return None
        return state

    def after_fork(self, kept):
        """In the child: keep a seed, or remember the fresh state."""
        if kept is None:
            self.entropy_state = _getstate()
        else:
            _setstate(kept)
        _reseed_numpy()


def _follows(start, state):
    """Whether `state` comes from `start` by drawing numbers only, without a new seed in between."""
    if state[1] == start[1] or state[1][:_BLOCK_WORDS] == start[1][:_BLOCK_WORDS]:
        return True
    generator = _Random()
    generator.setstate(start)
    for _ in range(_BLOCKS_FOLLOWED):
        generator.getrandbits(32 * _BLOCK_WORDS)
        if generator.getstate()[1][:_BLOCK_WORDS] == state[1][:_BLOCK_WORDS]:
            return True
    return False


def _reseed_numpy():
    mtrand = sys.modules.get("numpy.random.mtrand")
    bits = getattr(getattr(mtrand, "_rand", None), "_bit_generator", None)
    # numpy drops the sequence of entropy that the generator was made with as soon as somebody sets a seed.
    sequence = getattr(bits, "_seed_seq", None) or getattr(bits, "seed_seq", None)
    if sequence is not None:
        bits.state = type(bits)().state
