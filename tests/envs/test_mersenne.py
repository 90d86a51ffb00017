"""The generator draws what numpy's legacy RandomState draws."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl.envs.mersenne import STATE_WORDS, draw_below, draw_double, draw_word, seed_generator

SEEDS = st.integers(0, 2**32 - 1)


def started(seed):
    key, pos = np.zeros(STATE_WORDS, dtype=np.uint32), np.zeros(1, dtype=np.int64)
    seed_generator(key, pos, seed)
    return key, pos


@settings(deadline=None)  # the first call compiles
@given(SEEDS)
def test_the_state_after_seeding_is_numpys(seed):
    key, pos = started(seed)
    _, expected_key, expected_pos, *_ = np.random.RandomState(seed).get_state()
    assert np.array_equal(key, expected_key)
    assert pos[0] == expected_pos


@settings(deadline=None)  # the first call compiles
@given(SEEDS)
def test_doubles_are_numpys_beyond_the_first_turn_of_the_state(seed):
    key, pos = started(seed)
    drawn = [draw_double(key, pos) for _ in range(700)]
    assert drawn == np.random.RandomState(seed).random_sample(700).tolist()


@settings(deadline=None)  # the first call compiles
@given(SEEDS, st.integers(1, 9))
def test_choices_are_numpys_and_consume_as_much(seed, bound):
    key, pos = started(seed)
    reference = np.random.RandomState(seed)
    for _ in range(20):
        assert draw_below(key, pos, bound) == reference.choice(bound)
    assert draw_double(key, pos) == reference.random_sample()


def test_words_cover_thirty_two_bits():
    key, pos = started(1)
    words = [draw_word(key, pos) for _ in range(5)]
    assert words == np.random.RandomState(1).randint(0, 2**32, size=5, dtype=np.uint64).tolist()
