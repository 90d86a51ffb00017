"""The verdict and the scales of a fit, on numbers that are known by hand."""

import numpy as np
import pytest
from gymnasium import spaces

from blendctl.experiments.scales import measure_scales
from blendctl.features.flattening import Flattening
from blendctl.fitting.judgement import judge
from blendctl.fitting.outcomes import Outcomes


def outcomes(mean_return, mean_cost, *, seed=0, spread=1.0, episodes=30):
    rng = np.random.default_rng(seed)
    returns = mean_return + spread * rng.normal(size=episodes)
    costs = mean_cost + spread * rng.normal(size=episodes)
    return Outcomes(returns, costs, np.full(episodes, 10.0))


def verdict(blend, fast, slow):
    methods = {"blend": blend, "fast": fast, "slow": slow}
    return judge(
        methods, ["fast", "slow"], performant="fast", safe="slow", scales=measure_scales([fast.points, slow.points])
    )


FAST, SLOW = outcomes(100, 50, seed=1), outcomes(50, 10, seed=2)


@pytest.mark.parametrize(
    ("blend", "expected", "score"),
    [
        (outcomes(95, 15), "blend", 0.775),
        (outcomes(75, 30), "no difference", 0.0),  # on the mixing line
        (outcomes(60, 40), "no difference", -0.55),  # worse than mixing, but neither controller is better in all
    ],
)
def test_a_blend_must_leave_the_mixing_line(blend, expected, score):
    judged = verdict(blend, FAST, SLOW)
    assert judged.verdict == expected
    assert judged.score.value == pytest.approx(score, abs=0.06)


def test_the_words_name_methods_that_are_as_good_as_the_blend_or_better():
    methods = {"blend": outcomes(95, 15), "fast": FAST, "slow": SLOW, "threshold": outcomes(95, 15, seed=5)}
    methods["shared"], methods["coin per step"] = outcomes(75, 30), outcomes(98, 11)
    judged = judge(
        methods, ["fast", "slow"], performant="fast", safe="slow", scales=measure_scales([FAST.points, SLOW.points])
    )
    better = "rather than a controller alone; but a simpler method is shown to be better still: coin per step."
    assert judged.words == f"Use the blend {better} Not shown to be worse than the blend: threshold."
    assert "shared" not in judged.front


def test_a_controller_that_dominates_is_the_verdict_unless_the_blend_beats_it():
    best, worst = outcomes(100, 10, seed=1), outcomes(50, 50, seed=2)
    assert verdict(outcomes(99, 11), best, worst).verdict == "fast"
    assert verdict(outcomes(120, 5), best, worst).verdict == "blend"


def test_better_in_one_objective_and_equal_in_the_other_dominates():
    best, worst = outcomes(100, 0, spread=0.0), outcomes(50, 0, spread=0.0)
    assert verdict(outcomes(100, 0, spread=0.0), best, worst).verdict == "fast"


def test_scales_are_what_controllers_differ_by_and_never_zero():
    scales = measure_scales([outcomes(100, 50, spread=0.0).points, outcomes(50, 10, spread=0.0).points])
    assert (scales.returns, scales.costs) == (50, 40)
    assert scales.utility(np.array([[100.0, 50.0], [50.0, 10.0]])) == pytest.approx([0.75, 0.75])
    same = measure_scales([outcomes(1, 0, spread=0.0).points] * 2)
    assert (same.returns, same.costs) == (1, 1)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (3,)),
        spaces.Box(-1, 1, (2, 3)),
        spaces.Discrete(4, start=-2),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (2,))]),
        spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Dict({"x": spaces.Box(0, 1, (1, 2))})}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_observations_of_any_space_become_vectors_and_come_back(space):
    flattening = Flattening(Flattening.of(space).space)  # as it is read from a file
    space.seed(0)
    for _ in range(5):
        observation = space.sample()
        vector = flattening(observation)
        assert vector.shape == (flattening.size,)
        np.testing.assert_allclose(vector, spaces.flatten(space, observation), rtol=1e-6)
        np.testing.assert_allclose(flattening(flattening.restore(vector)), vector)
