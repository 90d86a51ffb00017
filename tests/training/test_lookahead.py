"""Look-ahead training: labels of all branches, a choice known by hand, checkpoints, resuming."""

from dataclasses import replace

import numpy as np
import pytest
from corridor import HOLD, corridor, drivers
from gymnasium.vector import AutoresetMode
from safetensors import safe_open

from blendctl.controllers import identity_encoding, load, read_lookahead
from blendctl.controllers.lookahead_network import controller_digest
from blendctl.envs import VectorWorld
from blendctl.errors import FileFormatError, InputError
from blendctl.rollout import StepInput
from blendctl.training import LookAheadConfig, train_lookahead
from blendctl.training.encodings import world_encodings
from blendctl.training.lookahead_checkpoint import read_checkpoint
from blendctl.training.lookahead_data import OptionCollector
from blendctl.training.lookahead_evaluation import FixedWeightSwitch, measure_dial
from blendctl.training.lookahead_learner import LookAheadLearner

SMALL = LookAheadConfig(
    steps=60_000,
    discount=0.5,
    weight_low=0.125,
    weight_high=2.0,
    hidden=(32,),
    members=2,
    minibatch=128,
    commit=0,
    teacher=4,
    reuse=10.0,
    final_reuse=50.0,
    lr=5e-3,
    random_share=0.5,
    target_rate=0.05,
)
CALM, DANGER = np.array([[-1.0, 0.0]]), np.array([[1.0, 0.0]])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("lookahead")
    return out, train_lookahead(drivers(), corridor(), config=SMALL, out=out, card={"world": "Corridor"})


def test_it_learns_to_be_slow_only_where_that_pays(trained):
    _, network = trained
    assert network.choose(np.repeat(CALM, 3, axis=0), [0.125, 0.5, 2.0]).tolist() == [0, 0, 0]
    assert network.choose(np.repeat(DANGER, 3, axis=0), [0.125, 0.25, 2.0]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_the_differences_are_those_computed_by_hand(weight, trained):
    _, network = trained
    # What follows the option does not depend on who drove it, so the difference is that of the option.
    expected = 0.9 * sum(SMALL.discount**t for t in range(HOLD))
    for observation, returns, costs in ((CALM, expected, 0.0), (DANGER, expected / 2, expected)):
        foresight = network.foresee(observation, weight)
        assert foresight.returns[0, 0] - foresight.returns[0, 1] == pytest.approx(returns, abs=0.03)
        assert foresight.costs[0, 0] - foresight.costs[0, 1] == pytest.approx(costs, abs=0.03)


def test_the_card_has_accuracies_and_what_repeats_the_run(trained):
    out, network = trained
    assert read_lookahead(out).card == network.card
    assert network.names == ("fast", "slow")
    assert min(network.card["r2_difference"]) > 0.99
    assert network.card["branches"] is True
    assert network.card["world"] == "Corridor"
    assert network.card["config"] == SMALL.to_dict()
    assert LookAheadConfig.from_dict(network.card["config"]) == SMALL


def test_it_learns_without_branches(tmp_path):
    config = replace(SMALL, steps=40_000)
    network = train_lookahead(drivers(), corridor(branching=False), config=config, out=tmp_path)
    assert network.card["branches"] is False
    assert network.card["r2_difference"] is None
    assert network.choose(CALM, 2.0)[0] == 0
    assert network.choose(DANGER, 2.0)[0] == 1
    assert network.choose(DANGER, 0.125)[0] == 0


def test_every_branch_is_labelled_as_if_its_controller_drove():
    pair = [load("PointGoal1/ppo"), load("PointGoal1/ppo-lagrangian")]
    firsts = []
    for arms in (np.zeros(4, np.intp), np.ones(4, np.intp), np.array([0, 1, 0, 1])):
        worlds = VectorWorld("PointGoal1", 4, threads=1, autoreset_mode=AutoresetMode.SAME_STEP)
        encode = world_encodings("PointGoal1").context
        collector = OptionCollector(worlds, pair, encode=encode, hold=5, follow=2, discount=0.99, seed=0)
        first, ended = collector.collect(arms)
        second, _ = collector.collect(arms)
        worlds.close()
        assert not ended.any()
        assert np.array_equal(second.inputs, first.far[np.arange(4), arms])
        firsts.append(first)
    for other in firsts[1:]:  # the labels do not depend on the branch that continues
        for name, array in vars(firsts[0]).items():
            assert np.array_equal(array, getattr(other, name)), name
    assert firsts[0].labelled.all()
    assert firsts[0].near_carry == pytest.approx(0.99**5)
    assert firsts[0].far_carry == pytest.approx(0.99**15)


def test_the_networks_choose_after_the_first_option():
    collector = OptionCollector(
        corridor(worlds=3), drivers(), encode=np.float32, hold=4, follow=1, discount=0.5, seed=0
    )
    asked = []

    def choose(inputs):
        asked.append(inputs)
        return np.array([1, 1, 0])

    decisions, _ = collector.collect(np.zeros(3, np.intp), choose)
    assert np.array_equal(asked[0], decisions.near[:, 0])
    assert np.array_equal(asked[1], decisions.near[:, 1])
    later = (decisions.far_sums - decisions.near_sums)[..., 0] / decisions.near_carry  # return of the second option
    slow, fast = later[:2, 0], later[2, 0]
    assert later[:2, 1] == pytest.approx(slow, rel=1e-4)  # the same controller follows in both branches
    assert slow[0] < 0.5 * fast


@pytest.mark.parametrize("branching", [True, False])
def test_an_option_ends_with_its_episode(branching):
    worlds = corridor(branching=branching, worlds=3)
    collector = OptionCollector(worlds, drivers(), encode=np.float32, hold=8, follow=0, discount=0.5, seed=0)
    arms = np.array([0, 1, 0])
    outcomes = [collector.collect(arms) for _ in range(7)]
    assert [bool(ended.all()) for _, ended in outcomes] == [False] * 6 + [True]
    last = outcomes[-1][0]  # two steps of the episode are left
    rows = np.arange(3)
    rewards = np.where(last.inputs[:, 0] > 0, 0.5, 1.0)
    assert last.near_sums[rows, arms, 0] == pytest.approx(1.5 * rewards * [1.0, 0.1, 1.0])
    assert last.near_carry[rows, arms] == pytest.approx(0.25)  # the time limit is no termination
    assert last.labelled.sum() == (6 if branching else 3)
    assert collector.totals.finished[0][0] >= 25
    assert 2.5 <= collector.totals.finished[1][0] <= 5


class Counter:
    """A controller with memory."""

    name = "counter"

    def act(self, observation, rng=None):
        return np.zeros((len(observation), 1))

    def reset(self):
        self.resets = getattr(self, "resets", 0) + 1


def test_controllers_with_memory_are_not_branched():
    counter = Counter()
    collector = OptionCollector(
        corridor(), [counter, drivers()[0]], encode=np.float32, hold=5, follow=0, discount=0.5, seed=0
    )
    assert not collector.branching
    for _ in range(10):
        collector.collect(np.zeros(16, np.intp))
    assert counter.resets == 1


def stopped(out, *, share, **changes):
    """Run until a share of the training, then stop as Ctrl-C does."""
    progress = []
    with pytest.raises(KeyboardInterrupt):
        train_lookahead(
            drivers(),
            corridor(),
            config=replace(SMALL, **changes),
            out=out,
            on_progress=lambda p: progress.append(p.share),
            should_stop=lambda: bool(progress) and progress[-1] >= share,
        )


@pytest.mark.parametrize("share", [0.25, 0.75])  # during the collection, during the final fit
def test_a_run_resumes_from_the_state_at_which_it_stopped(share, tmp_path):
    stopped(tmp_path, share=share)
    saved = read_checkpoint(tmp_path)
    members = 1 if share < 0.5 else saved.config.members  # the collection needs one
    learner = LookAheadLearner(2, 2, config=replace(saved.config, members=members))
    learner.restore(saved.tensors, updates=saved.updates)
    tensors = learner.tensors()
    assert all(np.array_equal(value, saved.tensors[name]) for name, value in tensors.items())
    assert {f"normalisation.{name}" for name in ("mean", "scale")} == set(saved.tensors) - set(tensors)
    shares = []
    network = train_lookahead(
        drivers(), corridor(), out=tmp_path, resume=True, on_progress=lambda p: shares.append(p.share)
    )
    assert shares[0] > share
    assert shares[-1] == 1.0
    assert network.card["gradient_steps"] > saved.updates > 0
    assert min(network.card["r2_difference"]) > 0.99
    assert network.choose(DANGER, 2.0)[0] == 1


def test_resuming_a_finished_run_returns_the_same_networks(trained):
    out, network = trained
    again = train_lookahead(drivers(), corridor(), out=out, resume=True, card={"world": "Corridor"})
    observations = np.random.default_rng(0).normal(size=(20, 2))
    assert np.array_equal(again.foresee(observations, 0.5).scores, network.foresee(observations, 0.5).scores)
    timeless = [{k: v for k, v in n.card.items() if k != "seconds"} for n in (again, network)]
    assert timeless[0] == timeless[1]


def test_a_run_is_repeated_bit_for_bit(tmp_path):
    config = replace(SMALL, steps=20_000)
    both = [
        train_lookahead(drivers(), corridor(), config=config, out=tmp_path / name).foresee(CALM, 1.0) for name in "ab"
    ]
    assert np.array_equal(both[0].returns, both[1].returns)


def test_a_run_is_not_overwritten_and_not_resumed_with_something_else(trained, tmp_path):
    out, _ = trained
    with pytest.raises(InputError, match="already holds a run"):
        train_lookahead(drivers(), corridor(), out=out)
    with pytest.raises(InputError, match="another order"):
        train_lookahead(drivers()[::-1], corridor(), out=out, resume=True)
    with pytest.raises(InputError, match="other options"):
        train_lookahead(drivers(), corridor(), config=LookAheadConfig(), out=out, resume=True)
    with pytest.raises(InputError, match="no checkpoint"):
        train_lookahead(drivers(), corridor(), out=tmp_path, resume=True)


def test_damaged_checkpoints_and_decisions_are_refused(tmp_path):
    stopped(tmp_path, share=0.2, steps=20_000)
    decisions = next(tmp_path.glob("decisions-*"))
    content = decisions.read_bytes()
    decisions.write_bytes(content[:-50])
    with pytest.raises(FileFormatError, match="damaged"):
        train_lookahead(drivers(), corridor(), out=tmp_path, resume=True)
    decisions.unlink()
    with pytest.raises(FileFormatError, match="lacks decisions"):
        train_lookahead(drivers(), corridor(), out=tmp_path, resume=True)
    (tmp_path / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(FileFormatError, match="not a readable look-ahead checkpoint"):
        train_lookahead(drivers(), corridor(), out=tmp_path, resume=True)


def test_a_checkpoint_holds_numbers_only(trained):
    with safe_open(str(trained[0] / "checkpoint.safetensors"), framework="numpy") as file:
        assert set(file.metadata()) == {"blendctl"}


def test_unusable_environments_and_controllers_are_refused(tmp_path):
    with pytest.raises(InputError, match="SAME_STEP"):
        train_lookahead(drivers(), corridor(mode=AutoresetMode.NEXT_STEP), config=SMALL, out=tmp_path)
    with pytest.raises(InputError, match="two controllers or more"):
        train_lookahead(drivers()[:1], corridor(), config=SMALL, out=tmp_path)


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"hold": 0},
        {"discount": 1.0},
        {"weight_low": 0.0},
        {"weight_low": 2.0},
        {"explore": 1.5},
        {"hidden": []},
        {"lr": -1.0},
        {"target_rate": 0.0},
        {"dial_points": 1},
        {"minibatch": "many"},
        {"stepz": 3},
    ],
)
def test_wrong_options_are_refused_with_what_is_allowed(bad):
    with pytest.raises(InputError, match=r"allowed|expected"):
        LookAheadConfig.from_dict(bad)


class Still:
    """A controller that does not move."""

    def __init__(self, name):
        self.name = name

    def act(self, observation, rng=None):
        return np.zeros((len(observation), 2))


def test_the_dial_is_measured_on_whole_episodes():
    controllers = [Still("a"), Still("b")]
    network = LookAheadLearner(60, 2, config=SMALL).network(
        identity_encoding(60), digests=tuple(map(controller_digest, controllers)), names=("a", "b"), card={}
    )
    rows = measure_dial(network, controllers, world="PointGoal1", weights=[0.125, 2.0], episodes=3)
    assert [row["weight"] for row in rows["dial"]] == [0.125, 2.0]
    assert [row["name"] for row in rows["alone"]] == ["a", "b"]
    every = rows["dial"] + rows["alone"]
    assert all(row["episodes"] == 3 and row["seed"] == 500_000 for row in every)
    # Neither controller moves, so all drivers have the same episodes.
    assert len({(row["return_mean"], row["cost_mean"], row["over_budget"]) for row in every}) == 1
    assert rows["episode_steps"] == 1000
    assert replace(network, card=rows).card["dial"] == rows["dial"]


def test_the_switch_decides_at_the_start_of_each_option(trained):
    switch = FixedWeightSwitch(trained[1], 2.0)
    observations = np.concatenate([CALM, DANGER, CALM, DANGER])
    frame = StepInput.at_start(observations, np.zeros((2, 4, 1)))
    assert switch.choose(frame).tolist() == [0, 1, 0, 1]
    last = np.array([1, 1, 0, 0])
    frame = StepInput(7, observations, frame.proposals, np.array([HOLD, HOLD + 1, 1, 0]), np.zeros(4), last)
    assert switch.choose(frame).tolist() == [0, 1, 0, 1]
