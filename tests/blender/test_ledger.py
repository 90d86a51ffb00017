"""The ledger books every piece of feedback to one step of one stage; the bench counts steps."""

import numpy as np
import pytest

from blendctl.blender.bench import Bench, BenchRules
from blendctl.features import BoundFeature, Custom


class Discounted(Custom):
    discount = 0.5


class Bootstrapped(Custom):
    """Adds what follows, ten of each objective, to the feedback of a stage."""

    bootstraps = True

    def target(self, feedback, observation, *, steps):
        return feedback + 10.0


class Budgeted(BoundFeature):
    """Keeps what was spent at each decision, and the costs of finished episodes."""

    size = 2
    bootstraps = True

    def __init__(self):
        self.spent, self.ended = [], []

    def bind(self, controllers, *, objectives):
        return self

    def __call__(self, observation, action, arm):
        return [0.5, 0.5]

    def begin_stage(self, spent, episode_step):
        self.spent.append(float(spent[0]))

    def end_episodes(self, costs):
        self.ended.extend(costs.tolist())


def act(blender, observation, times):
    for _ in range(times):
        blender.act(observation)


def test_feedback_for_a_stage_goes_to_its_steps_in_turn(make, observation):
    blender = make(hold=3)
    act(blender, observation, 3)
    assert [blender.observe(1.0, 0.0, stage=1) for _ in range(4)] == ["counted", "counted", "learned", "duplicate"]
    assert (blender.counts.observed, blender.counts.duplicates, blender.counts.learned) == (3, 1, 1)


def test_each_piece_without_a_stage_is_counted_once(make, observation):
    blender = make()
    act(blender, observation, 1)
    assert blender.observe(1.0, 0.0, stage=99) == blender.observe(1.0, 0.0, step=99) == "unknown"
    assert blender.counts.unknown == 2


def test_a_stage_with_refused_feedback_is_never_learned_from(make, observation):
    blender = make(hold=2)
    act(blender, observation, 1)
    assert blender.observe(np.nan, 0.0) == "refused"
    act(blender, observation, 1)
    assert blender.observe(1.0, 0.0) == "counted"
    assert (blender.counts.learned, blender.counts.refused, blender.counts.events) == (0, 1, 1)


def test_feedback_within_a_stage_is_discounted(make, observation):
    blender = make(hold=3, features=Discounted(lambda observation, action, arm: [0.5, 0.5], size=2))
    for _ in range(3):
        blender.act(observation)
        blender.observe(1.0, 2.0)
    assert blender.last.feedback.tolist() == [1.75, -3.5]
    assert (blender.last.reward, blender.last.cost) == (3.0, 6.0)


def test_a_stage_is_learned_with_the_value_of_what_follows(make, observation):
    blender = make(features=Bootstrapped(lambda observation, action, arm: [0.5, 0.5], size=2))
    blender.act(observation)
    assert blender.observe(1.0, 2.0) == "counted"
    blender.act(observation)
    assert blender.counts.learned == 1
    moment = blender.bandit.theta @ (np.eye(2) + np.full((2, 2), 0.25))  # V theta, after one update
    np.testing.assert_allclose(moment, 0.5 * np.outer([11.0, 8.0], [1.0, 1.0]))
    blender.end_episode()  # nothing is known of what follows
    assert blender.counts.learned == 1


def test_steps_and_cost_of_the_episode_are_counted(make, observation):
    blender = make(hold=2)
    for _ in range(5):
        blender.act(observation)
        blender.observe(1.0, 2.0)
    spent, steps = blender._ledger.episode_so_far
    assert (spent.tolist(), steps.tolist()) == ([10.0], [5])
    blender.end_episode()
    assert [int(part[0]) for part in blender._ledger.episode_so_far] == [0, 0]


@pytest.mark.parametrize("first", [1, 10])
def test_a_controller_sits_out_longer_each_time(first):
    bench = Bench(2, BenchRules(first=first, growth=2, longest=3 * first))
    assert bench.fit(0, 0)
    assert bench.fail(0, 0) == first
    assert [bench.fit(0, step) for step in (0, first, first + 1)] == [False, False, True]
    again = first + 1  # fit again, but not for as long as it sat out
    assert bench.fail(0, again) == 2 * first
    assert bench.fail(0, again + 1 + 2 * first) == 3 * first
    assert (bench.failures, bench.failed_at[0]) == ([3, 0], again + 1 + 2 * first)
    assert bench.fail(0, bench.until[0] + 3 * first) == first  # a clean record
    assert bench.fit(1, 0)


def test_a_benched_controller_is_reinstated_where_no_other_can_drive():
    bench = Bench(1, BenchRules())
    bench.fail(0, 4)
    bench.reinstate(0, 6)
    assert bench.fit(0, 6)
    assert not bench.fit(0, 5)
    bench.reinstate(0, 9)  # already fit
    assert bench.until == [6]


def test_late_costs_of_the_running_episode_count_against_its_budget(make, observation):
    feature = Budgeted()
    blender = make(features=feature)
    for step in range(1, 7):
        blender.act(observation)
        if step > 3:
            assert blender.observe(0.0, 1.0, step=step - 3) == "late"
    assert feature.spent == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]
    blender.end_episode()
    assert feature.ended == [3.0]
    blender.observe(0.0, 1.0, step=4)  # of an episode that is over
    blender.act(observation)
    blender.observe(0.0, 1.0, step=5)
    assert feature.spent[-1] == 0.0
    blender.act(observation)
    assert feature.spent[-1] == 0.0


def test_a_known_cost_counts_even_if_the_reward_is_not_a_number(make, observation):
    feature = Budgeted()
    blender = make(features=feature)
    for reward, cost in ((np.nan, 2.0), (0.0, np.nan), (0.0, 1.0)):
        blender.act(observation)
        blender.observe(reward, cost)
    blender.end_episode()
    assert feature.ended == [3.0]


def test_an_episode_without_steps_is_not_an_episode_that_cost_nothing(make, observation):
    feature = Budgeted()
    blender = make(features=feature)
    blender.end_episode()
    blender.act(observation)
    blender.observe(0.0, 4.0, done=True)
    blender.end_episode()
    assert feature.ended == [4.0]
