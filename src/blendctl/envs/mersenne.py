"""Draw random numbers as numpy's legacy RandomState does, in compiled code with explicit state.

The state of one generator is `key` (624,) uint32 and `pos` (1,) int64; seeds therefore mean the
same worlds here as in the reference, which draws from `numpy.random.RandomState`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blendctl.compiled import compiled

STATE_WORDS = 624
_SHIFT = 397

Words = NDArray[np.uint32]
Position = NDArray[np.int64]


@compiled
def seed_generator(key: Words, pos: Position, seed: int) -> None:
    """Seed the generator with a number between 0 and 2**32 - 1."""
    word = np.uint64(seed) & np.uint64(0xFFFFFFFF)
    for i in range(STATE_WORDS):
        key[i] = np.uint32(word)
        mixed = word ^ (word >> np.uint64(30))
        word = (np.uint64(1812433253) * mixed + np.uint64(i + 1)) & np.uint64(0xFFFFFFFF)
    pos[0] = STATE_WORDS


@compiled
def _twist(key: Words) -> None:
    for i in range(STATE_WORDS):
        follower = key[(i + 1) % STATE_WORDS]
        y = (key[i] & np.uint32(0x80000000)) | (follower & np.uint32(0x7FFFFFFF))
        word = key[(i + _SHIFT) % STATE_WORDS] ^ (y >> np.uint32(1))
        if y & np.uint32(1):
            word ^= np.uint32(0x9908B0DF)
        key[i] = word


@compiled
def draw_word(key: Words, pos: Position) -> int:
    """Draw 32 bits."""
    if pos[0] >= STATE_WORDS:
        _twist(key)
        pos[0] = 0
    y = np.uint64(key[pos[0]])
    pos[0] += 1
    y ^= y >> np.uint64(11)
    y ^= (y << np.uint64(7)) & np.uint64(0x9D2C5680)
    y ^= (y << np.uint64(15)) & np.uint64(0xEFC60000)
    y ^= y >> np.uint64(18)
    return np.int64(y)  # type: ignore[return-value]  # callers take it as an int


@compiled
def draw_double(key: Words, pos: Position) -> float:
    """Draw from [0, 1) with 53 bits."""
    high = draw_word(key, pos) >> 5
    low = draw_word(key, pos) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0


@compiled
def draw_below(key: Words, pos: Position, bound: int) -> int:
    """Draw a whole number from 0 to bound - 1, by masking and rejecting as RandomState.choice does."""
    if bound <= 1:
        return 0
    mask = 1
    while mask < bound - 1:
        mask = 2 * mask + 1
    value = draw_word(key, pos) & mask
    while value >= bound:
        value = draw_word(key, pos) & mask
    return value
