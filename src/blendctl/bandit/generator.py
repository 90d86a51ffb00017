"""The learner's random generator, compiled: xoshiro256++ with its uniform and normal draws."""

from __future__ import annotations

import math

import numpy as np

from blendctl.arrays import FloatArray, WordArray
from blendctl.compiled import compiled


@compiled
def next_word(rng: WordArray) -> np.uint64:
    """Draw 64 random bits (xoshiro256++: the same words on every machine)."""
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
    return np.uint64(word)


@compiled
def uniform(rng: WordArray) -> float:
    """Draw from [0, 1) with 53 bits."""
    return np.float64(next_word(rng) >> np.uint64(11)) * 1.1102230246251565e-16


@compiled
def normals(rng: WordArray, out: FloatArray, pooled: bool) -> None:
    """Fill out (f, n) with standard normals (Box-Muller), row f from generator f, or all from generator 0."""
    for f in range(out.shape[0]):
        generator = rng[0 if pooled else f]
        for i in range(out.shape[1]):
            length = math.sqrt(-2.0 * math.log(1.0 - uniform(generator)))
            out[f, i] = length * math.cos(2.0 * math.pi * uniform(generator))
