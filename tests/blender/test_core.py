"""The blender chooses, drives and learns; wrong arguments raise clear errors."""

import re
import threading

import numpy as np
import pytest

import blendctl
from blendctl import BlendingBandit, pareto
from blendctl.bandit.rules import Fixed
from blendctl.blender.record import Record, StageDecision
from blendctl.errors import InputError, StateError
from blendctl.features import Custom, OneHot


def drive(blender, observation, steps, *, cost_of_speed=1.0):
    for _ in range(steps):
        action = blender.act(observation)
        blender.observe(reward=action[0], cost=cost_of_speed * float(action[0] > 0.6))


def test_it_learns_whom_to_trust(make, observation):
    blender = make("fast", "safe")
    drive(blender, observation, 500)
    assert blender.last.name == "safe"  # 0.8 less reward, but 1 less cost: the smaller maximal loss
    cheap = make("fast", "safe")
    drive(cheap, observation, 500, cost_of_speed=0.1)
    assert cheap.last.name == "fast"


def test_scales_say_what_counts_as_one(make, observation):
    blender = make("fast", "safe", scales=[1.0, 4.0])  # four units of cost weigh as one of reward
    drive(blender, observation, 500)
    assert blender.last.name == "fast"


def test_the_bandit_sees_the_context_of_the_arm_that_drove(make, observation):
    blender = make("fast", "safe", "third")
    twin = BlendingBandit(2, 2, seed=0, on_large_feature="rescale")
    for _ in range(50):
        action = blender.act(observation)
        psi = [blender.feature(observation, a, i) for i, a in enumerate(blender.last.proposals)]
        assert twin.decide(psi).arm == blender.last.arm
        blender.observe(reward=action[0], cost=0.5)
        twin.update(psi[blender.last.arm], [action[0], -0.5])
    assert np.array_equal(twin.theta, blender.bandit.theta)
    assert blender.loss_bound == pytest.approx(twin.loss_bound)


def test_a_seed_makes_everything_the_same_again(make, observation):
    def noisy(name):
        return lambda o, rng: np.array([rng.normal(), 0.0])

    runs = []
    for _ in range(2):
        blender = make(controllers=[noisy("a"), noisy("b")], features="one-hot", seed=3)
        runs.append([blender.act(observation) for _ in range(20) if blender.last is None or not drive_one(blender)])
    assert np.array_equal(runs[0], runs[1])
    assert np.unique(np.array(runs[0])[:, 0]).size > 10


def drive_one(blender):
    blender.observe(reward=0.1, cost=0.0)


def test_stochastic_false_asks_for_means(make, observation):
    seen = []
    blender = make(controllers=[lambda o, rng: seen.append(rng) or [0.0, 0.0]], stochastic=False)
    blender.act(observation)
    assert seen == [None]


def test_a_held_decision_is_learned_from_once_with_the_sum(make, observation):
    blender = make("fast", "safe", hold=3)
    for stage in range(1, 5):
        for i in range(3):
            blender.act(observation)
            assert (blender.last.stage, blender.last.steps) == (stage, i + 1)
            assert blender.observe(reward=1.0, cost=i) == ("learned" if i == 2 else "counted")
        assert blender.last.feedback.tolist() == [3.0, -3.0]
        assert blender.bandit.stage == stage
    assert blender.last.step == 10


def test_only_the_driver_is_asked_while_it_is_held(make, observation):
    blender = make("fast", "safe", hold=10)
    drive(blender, observation, 10)
    assert sorted(c.asked for c in blender.controllers) == [1, 10]


def test_an_episodes_end_ends_a_held_stage(make, observation):
    blender = make("fast", "safe", hold=10)
    blender.act(observation)
    blender.observe(reward=1.0, cost=0.0)
    blender.act(observation)
    assert blender.observe(reward=1.0, cost=0.0, done=True) == "counted"
    assert blender.last.learned
    assert blender.last.feedback.tolist() == [2.0, 0.0]
    blender.act(observation)
    assert (blender.last.stage, blender.last.episode) == (2, 1)


def test_the_minimum_dwell_is_kept(make, observation):
    blender = make("fast", "safe", rule="random", dwell=5, seed=1)
    arms = []
    for _ in range(200):
        blender.act(observation)
        arms.append(blender.last.arm)
        blender.observe(reward=0.0, cost=0.0)
    changes = np.flatnonzero(np.diff(arms)) + 1
    assert len(changes) > 5
    assert np.diff(changes).min() >= 5
    assert blender.counts.switches == len(changes)


def test_the_bound_covers_the_arm_that_really_drove(make, observation):
    blender = make("fast", "safe", dwell=50)
    total = 0.0
    for _ in range(120):
        blender.act(observation)
        total += blender.last.loss_bound
        blender.observe(reward=0.1, cost=0.5)
    assert blender.loss_bound == pytest.approx(total / 120)


def test_the_average_loss_stays_under_its_bound(make):
    rng = np.random.default_rng(0)
    theta = np.array([[0.9, 0.1], [0.2, -0.8]])
    psi = {}
    blender = make("fast", "safe", features=Custom(lambda o, a, arm: psi[arm], size=2), noise=0.1)
    losses = []
    for _ in range(2000):
        psi = {arm: rng.uniform(-0.7, 0.7, 2) for arm in range(2)}
        truth = np.array([theta @ psi[arm] for arm in range(2)])
        blender.act(np.zeros(4))
        losses.append(pareto.maximal_loss(truth)[blender.last.arm])
        reward, value = truth[blender.last.arm] + 0.1 * rng.normal(size=2)
        blender.observe(reward=reward, cost=-value)
    assert np.mean(losses) <= blender.loss_bound < 1.0


def test_previous_context_begins_by_chance_and_is_one_step_stale(make, observation):
    firsts = set()
    for seed in range(20):
        blender = make("fast", "safe", context="previous", seed=seed)
        blender.act(observation)
        firsts.add(blender.last.name)
        assert blender.last.cause == "first"
    assert firsts == {"fast", "safe"}
    psi = {0: [0.1, 0.0], 1: [0.9, 0.0]}
    stale = make("fast", "safe", context="previous", features=Custom(lambda o, a, arm: psi[arm], size=2))
    stale.act(observation)
    stale.observe(reward=0.0, cost=0.0)
    psi = {0: [0.9, 0.0], 1: [0.1, 0.0]}
    stale.act(observation)
    assert stale.last.name == "safe"  # longer at the state before: more may be gained
    assert stale.last.features[1].tolist() == [0.1, 0.0]  # but it is learned with psi of now
    stale.observe(reward=0.0, cost=0.0)
    stale.act(observation)
    assert stale.last.name == "fast"


def test_a_frozen_blender_decides_and_does_not_learn(make, observation):
    with pytest.raises(InputError, match="has learned nothing yet"):
        make("fast", "safe", frozen=True)
    with pytest.raises(InputError, match="has learned nothing yet"):
        make("fast", "safe", frozen=True, bandit=BlendingBandit(2, 2))
    make("fast", "safe", frozen=True, rule="fixed")  # needs no estimates
    first = make("fast", "safe")
    drive(first, observation, 30)
    blender = make("fast", "safe", frozen=True, bandit=first.bandit)
    drive(blender, observation, 20)
    assert blender.bandit.stage == 30
    assert not blender.last.learned
    assert blender.counts.stages == 20


def test_a_saved_bandit_is_gone_on_with(make, observation, tmp_path):
    first = make("fast", "safe")
    drive(first, observation, 300)
    first.bandit.save(tmp_path / "bandit")
    second = make("fast", "safe", bandit=tmp_path / "bandit")
    assert second.bandit.stage == 300
    second.act(observation)
    assert second.last.name == "safe"
    assert second.loss_bound == pytest.approx(second.last.loss_bound)  # its own decisions alone


def test_several_costs_make_several_objectives(make, observation):
    blender = make(
        "fast",
        "safe",
        objectives=["reward", "-cost_hazards", ("thrift", lambda f: -f["energy"])],
        features=OneHot(),
    )
    blender.act(observation)
    blender.observe(reward=1.0, cost_hazards=0.25, energy=2.0)
    assert blender.last.feedback.tolist() == [1.0, -0.25, -2.0]
    assert blender.bandit.n_objectives == 3


def test_the_reason_of_a_switch_has_its_numbers(make, observation):
    blender = make("fast", "safe")
    drive(blender, observation, 500)
    assert re.fullmatch(r"safe: predicted cost \S+ against \S+ of fast", blender.last.reason)
    assert float(blender.last.reason.split()[3]) < float(blender.last.reason.split()[5])


def test_a_rule_can_be_given(make, observation):
    blender = make("fast", "safe", rule=Fixed(arm=1))
    drive(blender, observation, 5)
    assert blender.last.name == "safe"


def test_features_too_long_are_rescaled_and_counted(make, observation):
    blender = make("fast", "safe", features=Custom(lambda o, a, arm: [3.0, 4.0], size=2))
    drive(blender, observation, 1)
    assert blender.bandit.rescaled == 3  # two in the decision, one in the update


def test_act_and_observe_from_many_threads(make, observation):
    blender = make("fast", "safe", window=10_000)

    def work():
        for _ in range(200):
            blender.act(observation)
            blender.observe(reward=0.1, cost=0.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = blender.counts
    assert counts.stages == 800
    assert counts.observed + counts.duplicates == 800
    assert counts.learned == counts.observed == blender.bandit.stage


def test_the_public_names_are_there():
    assert blendctl.Blender is blendctl.blender.Blender
    assert callable(blendctl.run)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objectives": ["reward", "cost"]}, 'did you mean "-cost"'),
        ({"objectives": ["rewards"]}, 'no objective "rewards"; did you mean "reward"'),
        ({"objectives": []}, "not empty"),
        ({"objectives": ["reward", "reward"]}, "names of the objectives must differ"),
        ({"hold": 0}, "hold must be a whole number >= 1"),
        ({"context": "next"}, "current, previous"),
        ({"names": ["a"]}, "2 different words"),
        ({"fallback": "slow"}, 'no controller; did you mean|fallback names "slow"'),
        ({"fallback": 1}, "fallback must be the name of a controller"),
        ({"features": "prediction"}, 'did you mean "predictions"'),
        ({"features": "predictions"}, "has no context networks"),
        ({"features": lambda o, a, arm: [0.0]}, r"features.Custom\(function, size"),
        ({"deadline": 0.0}, "seconds > 0"),
        ({"deadline": "soon"}, "seconds > 0"),
        ({"bench": 5}, "BenchRules"),
        ({"record": 5}, "a directory or a Recorder"),
        ({"deadline": {"slow": 1.0}}, "the controllers are: fast, safe"),
        ({"safe_action": [0.0, np.nan]}, "finite"),
        ({"safe_action": [0.0]}, "one shape"),
        ({"action_shape": (3,)}, "one shape"),
        ({"action_shape": ("two",)}, "whole numbers"),
        ({"noize": 0.1}, 'did you mean "noise"'),
    ],
)  # fmt: skip
def test_what_a_blender_cannot_be_made_of_is_said(make, options, words):
    with pytest.raises(InputError, match=words):
        make("fast", "safe", **options)


def test_controllers_of_different_shapes_are_refused(make, observation):
    one, two = (lambda o: [0.0]), (lambda o: [0.0, 0.0])
    blender = make(controllers=[one, two], features="one-hot")
    with pytest.raises(InputError, match=re.escape("one shape, actually: ") + ".*(1,).*(2,)"):
        blender.act(observation)


def test_a_safe_action_of_another_shape_is_refused(make, observation):
    blender = make(controllers=[lambda o: [0.0, 1.0]], features="one-hot", safe_action=0.0)
    with pytest.raises(InputError, match=r"one shape.*safe_action \(\)"):
        blender.act(observation)


def test_any_kind_of_observation_drives(make):
    for seen in ([0.0, 1.0], {"speed": 1.0}, None, np.zeros((3, 2), np.float32), np.array([1, 2])):
        blender = make(controllers=[lambda o: [0.0], lambda o: [1.0]], features="one-hot")
        assert blender.act(seen).shape == (1,)
    with pytest.raises(StateError, match="observation is NaN"):
        make("fast", "safe").act([0.0, float("nan")])


def test_things_that_cannot_drive_are_refused(make):
    with pytest.raises(InputError, match="must have a method act"):
        make(controllers=[3, 4])
    with pytest.raises(InputError, match="not empty"):
        blendctl.Blender([])


def test_psi_of_the_wrong_size_is_refused(make, observation):
    blender = make("fast", "safe", features=Custom(lambda o, a, arm: [0.1], size=2))
    with pytest.raises(InputError, match="context of fast cannot be computed: a feature of size 2 returned 1"):
        blender.act(observation)


def test_a_bandit_that_does_not_fit_is_refused(make):
    with pytest.raises(InputError, match="3 features and 2 objectives, this blender needs 2 and 2"):
        make("fast", "safe", bandit=BlendingBandit(3, 2))
    with pytest.raises(InputError, match="leave out noise"):
        make("fast", "safe", bandit=BlendingBandit(2, 2), noise=0.2)


def test_observing_before_acting_is_refused(make):
    with pytest.raises(StateError, match="call act"):
        make().observe(reward=1.0, cost=0.0)


def test_feedback_without_a_part_that_an_objective_needs_is_refused(make, observation):
    blender = make()
    blender.act(observation)
    with pytest.raises(InputError, match=r'"-cost" needs cost.* in observe, actually: reward'):
        blender.observe(reward=1.0)
    assert blender.observe(reward=1.0, cost=0.0) == "learned"


def test_a_closed_blender_does_not_drive(make, observation):
    blender = make()
    blender.act(observation)
    blender.close()
    blender.close()
    with pytest.raises(StateError, match="closed"):
        blender.act(observation)


@pytest.mark.parametrize(
    ("feedback", "words"),
    [
        ({"reward": np.array([0.5]), "cost": np.array([0.0])}, "plain numbers"),
        ({"reward": "much", "cost": 0.0}, "plain numbers"),
        ({"reward": 0.5, "cost": 0.0, "step": 1.5}, "step must be a whole number"),
        ({"reward": 0.5, "cost": 0.0, "stage": "1"}, "stage must be a whole number"),
    ],
)
def test_feedback_that_is_not_a_number_is_refused_and_leaves_no_trace(make, observation, feedback, words):
    blender = make()
    blender.act(observation)
    with pytest.raises(InputError, match=words):
        blender.observe(**feedback)
    assert blender.observe(reward=0.5, cost=0.0) == "learned"


def test_a_function_of_the_feedback_sees_only_what_was_passed(make, observation):
    blender = make(objectives=["reward", ("net", lambda feedback: feedback["reward"] - feedback.get("cost", 0.0))])
    blender.act(observation)
    assert blender.observe(reward=0.5) == "learned"
    assert blender.last.feedback.tolist() == [0.5, 0.5]


def test_a_record_is_the_frozen_decision_followed_by_the_frozen_outcome(make, observation):
    assert Record._fields[: len(StageDecision._fields)] == StageDecision._fields
    fresh = make("fast", "safe")
    assert (fresh.last, fresh.choice) == (None, None)
    blender = make("fast", "safe")
    blender.act(observation)
    before = blender.last
    blender.observe(reward=0.5, cost=0.0)
    assert (before.learned, before.reward) == (False, 0.0)
    assert (blender.last.learned, blender.last.reward) == (True, 0.5)
    assert all(one is other for one, other in zip(blender.last, blender.choice, strict=False))
    with pytest.raises(AttributeError):
        before.reward = 1.0
