"""Drive a blender and its exported C form with the same observations and feedback, and compare them."""

import numpy as np
from compiled_blend import CAUSES

from blendctl.errors import StateError

TOLERANCE = 1e-12


class Comparison:
    """What differed so far between a blender and its compiled form."""

    def __init__(self, blender, compiled):
        self.blender, self.compiled = blender, compiled
        self.steps = self.arms_differ = 0
        self.psi = self.indices = self.actions = 0.0  # largest differences

    def step(self, observation):
        """Act in both; return Python's action, None if nobody could drive there."""
        blender, compiled = self.blender, self.compiled
        arm, action = compiled.act(observation)
        self.steps += 1
        try:
            mine = blender.act(np.array(observation))
        except StateError:
            assert arm == -1
            assert (action == 0.0).all()
            return None
        choice, info = blender.choice, compiled.info
        self.arms_differ += arm != choice.arm
        self.actions = max(self.actions, float(np.abs(mine - action).max()))
        if choice.step == blender.step and arm == choice.arm:
            assert CAUSES[info.cause] == choice.cause
            if choice.features is not None:
                usable = np.isfinite(choice.features).all(axis=1)
                np.testing.assert_array_equal(usable, np.isfinite(compiled.psi).all(axis=1))
                self.psi = max(self.psi, _difference(choice.features[usable], compiled.psi[usable]))
            if choice.decision is not None:
                self.indices = max(self.indices, _difference(choice.decision.ucb, compiled.ucb[list(choice.asked)]))
        return mine

    def observe(self, reward, cost, *, done=False):
        """Observe in both, as far as Python has something to observe."""
        compiled = self.compiled.observe([reward, -cost])
        if self.blender.choice is not None:
            assert compiled == self.blender.observe(reward, cost), "what was done with the feedback"
        else:
            assert compiled == "unknown"
        if done:
            self.blender.end_episode()
            self.compiled.end_episode()

    def expect_equal(self):
        """Assert equal arms, and psi, indices and actions within the tolerance; and equal counters."""
        assert self.arms_differ == 0
        assert max(self.psi, self.indices, self.actions) <= TOLERANCE, (self.psi, self.indices, self.actions)
        counts, status, bench = self.blender.counts, self.compiled.status, self.blender.drivers.bench
        for name in ("stages", "switches", "learned", "refused"):
            assert getattr(status, name) == getattr(counts, name), name
        assert (status.steps, status.episodes) == (self.blender.step, self.blender.episode)
        assert list(status.driven) == list(counts.driven.values())
        assert list(status.failures) == bench.failures
        assert list(status.benched) == [max(until - status.steps - 1, 0) for until in bench.until]
        self._expect_equal_feedback(status)

    def _expect_equal_feedback(self, status):
        feedback = self.blender.status()["feedback"]
        assert (status.compared, status.surprises) == (feedback["stages"], feedback["surprises"])
        assert (status.alarm or None) == feedback["alarm"]
        for mine, theirs in ((feedback["estimated"], status.estimated), (feedback["observed"], status.observed)):
            np.testing.assert_allclose(list(theirs), list((mine or {"none": 0.0, "either": 0.0}).values()), rtol=1e-9)


def _difference(expected, actual):
    """Return the largest difference, relative where numbers are larger than 1."""
    assert np.isfinite(actual).all()
    return float(np.max(np.abs(expected - actual) / np.maximum(np.abs(expected), 1.0), initial=0.0))


def drive_world(comparison, world, *, steps, seed, missing=(), episode_steps=None):
    """Drive a world by Python's actions; in the steps `missing` the observation is NaN."""
    from blendctl.envs import SingleWorld

    env = SingleWorld(world, max_episode_steps=episode_steps)
    observation, _ = env.reset(seed=seed)
    for step in range(steps):
        seen = observation.copy()
        if step in missing:
            seen[step % len(seen)] = np.nan
        action = comparison.step(seen)
        observation, reward, terminated, truncated, info = env.step(np.zeros(2) if action is None else action)
        ended = terminated or truncated
        comparison.observe(float(reward), float(info["cost"]), done=ended)
        if ended:
            seed += 1
            observation, _ = env.reset(seed=seed)
    env.close()
