"""A controller drives after every kind of failure, and nothing is learned from garbage."""

import copy
import signal
import sys
import threading
import time

import numpy as np
import pytest

from blendctl.blender import SAFE_ACTION, BenchRules, Blender, Recorder
from blendctl.blender.bench import Bench
from blendctl.errors import InputError, StateError
from blendctl.features import Custom

STOP = np.zeros(2)


class Moody:
    """Fails in a way that is set from outside."""

    action_size = 2

    def __init__(self, name):
        self.name, self.mood, self.asked = name, "well", 0

    def act(self, observation, rng=None):
        self.asked += 1
        match self.mood:
            case "raises":
                raise ValueError("boom")
            case "nan":
                return np.array([np.nan, 0.0])
            case "inf":
                return np.array([np.inf, 0.0])
            case "shape":
                return np.zeros(3)
            case "none":
                return None
            case "text":
                return "left"
            case "ragged":
                return [[1.0], [1.0, 2.0]]
        return np.array([0.5, 0.0])


MOODS = ["raises", "nan", "inf", "shape", "none", "text", "ragged"]


@pytest.mark.parametrize("mood", MOODS)
def test_another_drives_at_once_when_the_driver_fails(make, observation, mood):
    team = [Moody("fast"), Moody("other"), Moody("safe")]
    blender = make(controllers=team, fallback="safe", features="one-hot")
    blender.act(observation)
    blender.observe(reward=1.0, cost=0.0)
    driver = blender.last.arm
    team[driver].mood = mood
    action = blender.act(observation)
    assert np.isfinite(action).all()
    assert action.shape == (2,)
    assert blender.last.arm == (2 if driver != 2 else 0)  # the declared fallback, else the next in order
    assert blender.last.cause == "fallback"
    assert team[driver].name in blender.last.event
    assert "benched for 10 steps" in blender.last.event
    assert blender.last.reason.startswith(f"{blender.last.name}: took over")
    assert blender.observe(reward=1.0, cost=0.0) == "learned"  # with the context of the one that drove


class Unprintable(Exception):
    def __str__(self):
        raise SystemExit("not even this")


class Odd(BaseException):
    pass


@pytest.mark.parametrize("deadline", [None, 20.0])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Unprintable(), "raised an error that cannot be printed"),
        (SystemExit(3), "raised SystemExit: 3"),
        (KeyboardInterrupt("of its own"), "raised KeyboardInterrupt: of its own"),
        (GeneratorExit(), "raised GeneratorExit"),
        (Odd("odd"), "raised Odd: odd"),
        (ValueError("half a pair \ud800"), "raised ValueError: half a pair ?"),
        (ValueError("x" * 10_000), f"raised ValueError: {'x' * 200};"),
    ],
)
def test_whatever_a_controller_raises_is_its_own_failure(make, observation, tmp_path, error, words, deadline):
    def fails(observation):
        raise error

    blender = make(
        controllers=[fails, lambda o: [0.1, 0.0]], names=["bad", "good"], features="one-hot", action_shape=(2,),
        deadline=deadline, safe_action=STOP, record=tmp_path,
    )  # fmt: skip
    assert blender.act(observation).tolist() == [0.1, 0.0]
    assert blender.last.event.startswith(f"bad {words}")
    assert blender.last.event.endswith("benched for 10 steps")
    blender.observe(reward=0.0, cost=0.0)
    blender.close()  # the event can be written


@pytest.mark.parametrize("error", [Unprintable(), SystemExit(3), KeyboardInterrupt("of its own")])
def test_whatever_a_reset_or_a_context_raises_stops_nobody(make, observation, error):
    raises = []

    class Forgetful(Moody):
        def reset(self):
            raise error

    def psi(observation, action, arm):
        if raises:
            raise error
        return [0.5, 0.1 * arm]

    blender = make(controllers=[Forgetful("fast"), Moody("safe")], features=Custom(psi, size=2))
    blender.act(observation)
    raises.append(True)
    blender.act(observation)
    assert "the context of fast raised" in blender.last.event
    blender.end_episode()
    blender.act(observation)
    assert "fast failed in reset:" in blender.last.event


@pytest.mark.parametrize("handler", [None, lambda *_: sys.exit("terminated")])
def test_an_interrupt_by_a_signal_is_not_the_controllers_failure(make, observation, handler):
    number = signal.SIGINT if handler is None else signal.SIGTERM
    before = signal.signal(number, handler or signal.default_int_handler)

    def interrupted(observation):
        signal.raise_signal(number)
        time.sleep(20)
        return [0.0, 0.0]

    blender = make(controllers=[interrupted], features="one-hot", safe_action=STOP)
    try:
        with pytest.raises(KeyboardInterrupt if handler is None else SystemExit):
            blender.act(observation)
    finally:
        signal.signal(number, before)
    assert blender.drivers.bench.failures == [0]


def test_a_controller_that_fails_sits_out_longer_each_time_and_starts_afresh_after_good_conduct():
    bench = Bench(2, BenchRules(first=10, growth=2, longest=35))
    step, sentences = 1, []
    for _ in range(4):
        sentences.append(bench.fail(0, step))
        assert not bench.fit(0, step + sentences[-1])
        step += sentences[-1] + 1
        assert bench.fit(0, step)
    assert sentences == [10, 20, 35, 35]
    assert bench.fit(1, 1)
    assert bench.fail(0, step + 35) == 10
    assert bench.failures == [5, 0]


def test_a_benched_controller_is_not_asked_and_comes_back(make, observation):
    team = [Moody("fast"), Moody("safe")]
    team[0].mood = "raises"
    blender = make(controllers=team, features="one-hot", bench=BenchRules(first=5))
    for _ in range(6):
        blender.act(observation)
        blender.observe(reward=1.0, cost=0.0)
        assert blender.last.name == "safe"
    assert team[0].asked == 1
    team[0].mood = "well"
    assert blender.fit("fast")
    blender.act(observation)
    assert team[0].asked == 2
    assert blender.last.proposals[0] is not None
    with pytest.raises(InputError, match="no controller"):
        blender.fit("slow")


def test_without_anybody_fit_the_safe_action_is_taken_or_an_error_says_so(make, observation):
    team = [Moody("fast"), Moody("safe")]
    for controller in team:
        controller.mood = "raises"
    blender = make(controllers=team, features="one-hot", safe_action=STOP)
    for _ in range(3):
        assert np.array_equal(blender.act(observation), STOP)
        assert blender.last.arm == SAFE_ACTION
        assert blender.observe(reward=0.0, cost=0.0) == "counted"
    assert blender.bandit.stage == 0
    assert "no controller is fit" in blender.last.reason
    bare = make(controllers=team, features="one-hot")
    with pytest.raises(StateError, match=r"boom.*safe_action"):
        bare.act(observation)


def test_when_nobody_else_can_a_benched_controller_is_asked_again(make, observation):
    team = [Moody("fast"), Moody("safe")]
    blender = make(controllers=team, features="one-hot", safe_action=STOP, fallback="safe")
    for controller in team:
        controller.mood = "raises"
    blender.act(observation)
    assert blender.last.arm == SAFE_ACTION
    team[1].mood = "well"
    blender.act(observation)
    assert blender.last.name == "safe"
    assert blender.last.cause == "fallback"


def test_a_bad_observation_is_nobodys_fault(make):
    blender = make("fast", "safe", safe_action=STOP)
    blender.act(np.zeros(4))
    action = blender.act(np.array([np.nan, 0, 0, 0]))
    assert np.array_equal(action, STOP)
    assert "observation" in blender.last.event
    blender.act(np.zeros(4))
    assert blender.last.arm != SAFE_ACTION
    assert blender.fit("fast")
    assert blender.fit("safe")


def test_a_context_that_fails_leaves_its_arm_out(make, observation):
    broken = set()

    def psi(observation, action, arm):
        if arm in broken:
            raise RuntimeError("no context")
        return [0.5, 0.1 * arm]

    blender = make("fast", "safe", features=Custom(psi, size=2), fallback="safe")
    blender.act(observation)
    blender.observe(reward=1.0, cost=0.0)
    broken.add(1 - blender.last.arm)
    blender.act(observation)
    assert blender.last.arm not in broken
    assert blender.observe(reward=1.0, cost=0.0) == "learned"
    broken |= {0, 1}
    blender.act(observation)
    assert (blender.last.name, blender.last.cause) == ("safe", "no context")
    assert blender.observe(reward=1.0, cost=0.0) == "counted"
    assert blender.bandit.stage == 2


def test_a_deadline_is_kept_by_the_clock(make, observation):
    now = [0.0]

    class Late:
        action_size, keeps_time = 2, True

        def act(self, observation, rng=None):
            now[0] += 0.004 if self is blender.controllers[0] else 0.0
            return np.zeros(2)

    blender = make(
        controllers=[Late(), Late()],
        names=["fast", "safe"],
        features="one-hot",
        deadline=0.003,
        clock=lambda: now[0],
    )
    blender.act(observation)
    assert blender.last.name == "safe"
    assert "fast missed its deadline of 3 ms" in blender.last.event
    patient = make(
        controllers=blender.controllers, names=["fast", "safe"], features="one-hot", deadline={"safe": 0.003},
        clock=lambda: now[0],
    )  # fmt: skip
    patient.act(observation)
    assert patient.last.event is None


def test_a_controller_that_hangs_holds_nobody_up(make, observation):
    release, woken = threading.Event(), []

    def hangs(observation):
        if observation[0] > 0:
            release.wait(20)
            woken.append(True)
        return [0.0, 0.0]

    def quick(observation):
        return [0.1, 0.0]

    blender = make(
        controllers=[hangs, quick],
        features="one-hot",
        deadline=0.05,
        action_shape=(2,),
        bench=BenchRules(first=1),
    )
    blender.act(observation)
    blender.act(np.ones(4))
    assert not woken
    assert blender.last.name == "quick"
    assert "hangs missed its deadline of 50 ms" in blender.last.event
    blender.act(observation)
    blender.act(observation)
    assert "had not answered" in blender.last.event
    release.set()
    deadline = time.monotonic() + 20
    while blender.last.proposals[0] is None and time.monotonic() < deadline:
        blender.act(observation)
        time.sleep(0.001)
    assert blender.last.proposals[0].tolist() == [
        0.0,
        0.0,
    ]  # its late answer was thrown away; this one is new


def test_a_failure_within_a_held_stage_ends_it_and_it_is_not_learned_from(make, observation):
    team = [Moody("fast"), Moody("safe")]
    blender = make(controllers=team, features="one-hot", hold=4)
    blender.act(observation)
    blender.observe(reward=1.0, cost=0.0)
    first = blender.last
    team[first.arm].mood = "nan"
    blender.act(observation)
    assert blender.last.stage == 2
    assert blender.last.arm != first.arm
    assert not first.learned
    assert blender.observe(reward=1.0, cost=0.0) == "counted"
    for _ in range(3):
        blender.act(observation)
        outcome = blender.observe(reward=1.0, cost=0.0)
    assert outcome == "learned"
    assert blender.bandit.stage == 1


def test_a_controller_that_writes_into_the_observation_misleads_nobody(observation):
    def scribbles(observation):
        observation[:] = np.nan
        return [1.0, 0.0]

    blender = Blender([scribbles, lambda o: [o[0], 0.5]], ["scribbles", "reads"], features="one-hot", seed=0)
    blender.act(observation)
    assert blender.last.event is None
    assert blender.last.proposals[1].tolist() == [0.0, 0.5]
    assert not observation.any()


@pytest.mark.parametrize("deadline", [None, 20.0])
@pytest.mark.parametrize(
    "observation",
    [
        {"lidar": np.zeros(2), "parts": [np.zeros(1), {"speed": 0.0}]},
        [np.zeros(2), [0.0], (np.zeros(1), "text")],
        np.array([[0.0], [1.0, 2.0]], dtype=object),
    ],
)
def test_a_controller_that_writes_into_a_nested_observation_misleads_nobody(observation, deadline):
    before, seen = copy.deepcopy(observation), []

    def scribble(part):
        if isinstance(part, np.ndarray) and part.dtype != object:
            part[:] = 1e9
        elif isinstance(part, dict):
            for inner in part.values():
                scribble(inner)
            part.clear()
        elif isinstance(part, list | tuple | np.ndarray):
            for inner in part:
                scribble(inner)
            if isinstance(part, list):
                part.clear()

    def scribbles(observation):
        scribble(observation)
        return [1.0, 0.0]

    def reads(observation):
        seen.append(repr(observation))
        return [0.0, 0.5]

    blender = Blender([scribbles, reads, scribbles], features="one-hot", action_shape=(2,), deadline=deadline, seed=0)
    blender.act(observation)
    blender.close()
    assert blender.last.event is None
    assert seen == [repr(before)] == [repr(observation)]


def test_an_observation_that_cannot_be_copied_is_passed_as_it_is():
    handle = threading.Lock()
    blender = Blender([lambda o: [float(o["lock"] is handle)]], features="one-hot", seed=0)
    assert blender.act({"lock": handle}).tolist() == [1.0]


def test_feedback_after_an_act_that_raised_is_not_given_to_the_decision_before(observation):
    def moody(observation):
        if observation[0] > 0:
            raise ValueError("boom")
        return [0.5, 0.0]

    blender = Blender([moody], features="one-hot", seed=0)
    blender.act(observation)
    with pytest.raises(StateError, match="no controller is fit"):
        blender.act(np.ones(4))
    assert blender.observe(reward=9.0, cost=0.0) == "unknown"
    assert blender.observe(reward=0.1, cost=0.0, stage=1) == "late"
    assert blender.bandit.stage == 1


def test_late_double_and_missing_feedback_goes_to_its_own_stage_or_nowhere(make, observation):
    blender = make("fast", "safe", window=3, features="one-hot")
    for _ in range(3):
        blender.act(observation)
    assert blender.pending == 2
    arms = {}
    assert blender.observe(reward=0.3, cost=0.0, stage=1) == "late"
    assert blender.observe(reward=0.3, cost=0.0, stage=1) == "unknown"  # it is settled
    assert blender.observe(reward=0.1, cost=0.0) == "learned"
    assert blender.observe(reward=0.1, cost=0.0) == "duplicate"
    assert blender.observe(reward=0.1, cost=0.0, stage=99) == "unknown"
    assert blender.observe(reward=0.1, cost=0.0, step=2) == "late"
    assert blender.bandit.stage == 3
    for _ in range(5):
        blender.act(observation)
        arms[blender.last.stage] = blender.last.arm
    assert blender.pending == 3
    assert blender.counts.missing == 1  # stage 4 fell out of the window
    assert blender.observe(reward=0.0, cost=0.0, stage=4) == "unknown"
    assert blender.counts.late == 2


def test_late_feedback_of_a_held_stage_completes_it(make, observation):
    blender = make("fast", "safe", hold=2, features="one-hot")
    for _ in range(5):
        blender.act(observation)
    assert blender.observe(reward=1.0, cost=0.0, stage=1) == "late"
    assert blender.bandit.stage == 0
    assert blender.observe(reward=2.0, cost=0.0, step=1) == "duplicate"
    assert blender.observe(reward=2.0, cost=0.0, step=2) == "late"
    assert blender.bandit.stage == 1
    assert blender.bandit.gram.diagonal().sum() == pytest.approx(3.0)
    assert blender.bandit.theta[0].max() == pytest.approx(1.5)  # (1 + 2) / (1 + 1)


def test_feedback_that_is_not_finite_is_refused_and_reported(make, observation):
    blender = make("fast", "safe")
    blender.act(observation)
    assert blender.observe(reward=np.nan, cost=0.0) == "refused"
    assert "refused" in blender.last.event
    assert blender.observe(reward=1.0, cost=0.0) == "duplicate"
    blender.act(observation)
    assert blender.observe(reward=1e200, cost=0.0) == "counted"
    assert blender.counts.refused == 2
    assert blender.bandit.stage == 0


def test_a_rule_that_fails_in_mid_drive_does_not_stop_it(make, observation):
    class Fickle:
        name = "fickle"
        works = True

        def candidates(self, stage):
            if not self.works:
                raise ZeroDivisionError
            return np.ones(stage.loss.shape, dtype=bool)

    rule = Fickle()
    blender = make("fast", "safe", rule=rule, fallback="safe")
    blender.act(observation)
    rule.works = False
    blender.act(observation)
    assert blender.last.name == "safe"
    assert "the rule failed" in blender.last.event


class Chaos:
    """A controller that fails at random, in every way there is, and as often as not in bursts."""

    def __init__(self, name, rng, now, keeps_time=True):
        self.name, self.rng, self.now, self.keeps_time = name, rng, now, keeps_time
        self.action_size = 2
        self.mood = "well"

    def act(self, observation, rng=None):
        draw = self.rng.random()
        if draw < 0.02:
            self.mood = self.rng.choice([*MOODS, "late"])
        elif draw < 0.12:
            self.mood = "well"
        if self.mood == "late":
            self.now[0] += 1.0
            return np.zeros(2)
        moody = Moody(self.name)
        moody.mood = self.mood
        return moody.act(observation) * self.rng.uniform(0.5, 1.0) if self.mood == "well" else moody.act(observation)


def test_a_hundred_thousand_steps_of_every_failure_at_random(tmp_path):
    import pyarrow.dataset

    rng = np.random.default_rng(7)
    now = [0.0]
    team = [Chaos(name, rng, now) for name in ("fast", "middle", "safe")]

    def psi(observation, action, arm):
        draw = rng.random()
        if draw < 0.002:
            raise RuntimeError("no context")
        if draw < 0.004:
            return [np.nan, 0.0, 0.0]
        return [0.5 * action[0], 0.3 * (arm == 1), 0.3 * (arm == 2)]

    blender = Blender(
        team, features=Custom(psi, size=3), fallback=["safe", "middle"], safe_action=STOP, deadline=0.5, window=50,
        clock=lambda: now[0], record=Recorder(tmp_path / "record", group=5000), hold=2, seed=0,
        bench=BenchRules(first=3, longest=40),
    )  # fmt: skip
    blender._chooser.proven = True  # the drive is under way: from now on nothing is raised
    outcomes = dict.fromkeys(("learned", "counted", "late", "duplicate", "unknown", "refused"), 0)
    held_back = []
    for step in range(100_000):
        observation = np.array([np.nan, 0.0]) if rng.random() < 0.001 else rng.normal(size=2)
        action = blender.act(observation)
        assert type(action) is np.ndarray
        assert action.shape == (2,)
        assert np.isfinite(action).all()
        draw = rng.random()
        reward = np.nan if draw < 0.002 else float(rng.normal())
        feedback = {"reward": reward, "cost": float(draw < 0.1)}
        if draw > 0.97:
            held_back.append(feedback | {"step": blender.step})
        elif draw > 0.96:
            pass  # never comes
        else:
            outcomes[blender.observe(**feedback)] += 1
            if draw > 0.94:
                outcomes[blender.observe(**feedback)] += 1
        if held_back and rng.random() < 0.02:
            outcomes[blender.observe(**held_back.pop(int(rng.integers(len(held_back)))))] += 1
        if step % 1000 == 999:
            blender.end_episode()
    blender.close()
    counts = blender.counts
    assert all(outcomes.values())
    assert counts.safe_actions > 0
    assert counts.events > 1000
    assert counts.learned == blender.bandit.stage > 10_000

    table = pyarrow.dataset.dataset(tmp_path / "record", format="parquet").to_table()
    frame = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    first = ~frame["late"]
    assert frame["stage"][first].tolist() == list(range(1, counts.stages + 1))
    assert frame["steps"][first].sum() == 100_000
    assert ((frame["arm"] == SAFE_ACTION) & first).sum() == counts.safe_actions
    assert not (frame["learned"] & (frame["arm"] == SAFE_ACTION)).any()
    # the learner can be rebuilt from the record alone: nothing was learned twice, or from the wrong stage
    learned = frame["learned"]
    stages = frame["stage"][learned]
    assert len(np.unique(stages)) == len(stages) == counts.learned
    names = np.array(["fast", "middle", "safe"])[frame["arm"][learned]]
    rows = np.flatnonzero(learned)
    psi_learned = np.array(
        [[frame[f"psi_{name}_{i}"][row] for i in range(3)] for name, row in zip(names, rows, strict=True)]
    )
    feedback = np.stack([frame["feedback_reward"][learned], frame["feedback_minus_cost"][learned]], axis=1)
    gram = np.eye(3) + psi_learned.T @ psi_learned
    assert np.allclose(gram, blender.bandit.gram, rtol=1e-9)
    assert np.allclose(np.linalg.solve(gram, psi_learned.T @ feedback).T, blender.bandit.theta, atol=1e-8)
