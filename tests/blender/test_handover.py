"""A handover moves the action from one controller to the next without a jump; safety comes first."""

import numpy as np
import pytest

from blendctl import Blender
from blendctl.bandit.rules import DecisionInput
from blendctl.blender import CrossFade, SlewLimit
from blendctl.blender.handover import HandoverFilter, as_handover
from blendctl.errors import InputError


class Turns:
    """Let the arms drive in turns of `length` stages."""

    name = "turns"

    def __init__(self, length):
        self.length, self.stage = length, 0

    def candidates(self, stage: DecisionInput):
        arm = self.stage // self.length % stage.loss.shape[-1]
        self.stage += 1
        return np.broadcast_to(np.arange(stage.loss.shape[-1]) == arm, stage.loss.shape)


def drive(steps, **arguments):
    pair = [lambda o: [1.0, 0.0], lambda o: [-1.0, 0.5]]
    blender = Blender(pair, ["a", "b"], features="one-hot", rule=Turns(5), seed=0, **arguments)
    actions = []
    for _ in range(steps):
        actions.append(blender.act(np.zeros(3)))
        blender.observe(0.0, 0.0)
    return blender, np.array(actions)


def test_without_a_handover_the_action_jumps():
    _, actions = drive(12)
    assert np.abs(np.diff(actions[:, 0])).max() == 2.0


def test_a_cross_fade_reaches_the_new_controller_in_equal_shares():
    blender, actions = drive(10, handover="fade:4")
    np.testing.assert_allclose(actions[4:10, 0], [1.0, 0.5, 0.0, -0.5, -1.0, -1.0])
    np.testing.assert_allclose(actions[4:10, 1], [0.0, 0.125, 0.25, 0.375, 0.5, 0.5])
    np.testing.assert_array_equal(blender.choice.action, actions[-1])


def test_a_slew_limit_holds_for_every_entry_until_the_action_has_arrived():
    _, actions = drive(10, handover=SlewLimit((0.5, 0.1)))
    assert np.abs(np.diff(actions[:, 0])).max() <= 0.5 + 1e-12
    assert np.abs(np.diff(actions[:, 1])).max() <= 0.1 + 1e-12
    np.testing.assert_allclose(actions[5:10, 1], [0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_controller_alone_is_never_limited():
    jumps = iter([[0.0], [1.0], [-1.0], [1.0]])
    blender = Blender([lambda o: next(jumps)], features="one-hot", handover="slew:0.1", seed=0)
    assert [blender.act(np.zeros(1)).item() for _ in range(4)] == [0.0, 1.0, -1.0, 1.0]


def test_the_safe_action_is_not_delayed_and_is_where_the_next_handover_starts():
    pair = [lambda o: [1.0], lambda o: [1.0]]
    blender = Blender(pair, ["a", "b"], features="one-hot", handover="slew:0.25", safe_action=[0.0], seed=0)
    assert blender.act(np.zeros(1)).item() == 1.0
    assert blender.act(np.full(1, np.nan)).item() == 0.0
    assert blender.act(np.zeros(1)).item() == 0.25


def test_an_episode_begins_with_the_controllers_own_action():
    blender, actions = drive(6, handover="fade:4")
    assert actions[5, 0] == 0.5
    blender.end_episode()
    assert blender.act(np.zeros(3))[0] == -1.0


def test_whole_numbers_are_not_changed():
    moved = HandoverFilter(CrossFade(3))
    assert moved.apply(np.array(1), 0) == 1
    assert moved.apply(np.array(4), 1) == 4


def test_a_handover_is_restored_from_its_data():
    assert as_handover({"kind": "SlewLimit", "largest": [0.1, 0.2]}) == SlewLimit((0.1, 0.2))
    assert as_handover({"kind": "CrossFade", "steps": 3}) == CrossFade(3)
    assert as_handover("none") is None


@pytest.mark.parametrize("wrong", ["slew", "slew:-1", "fade:0", "jump:3", 5, {"kind": "Other"}, "fade:x"])
def test_other_handovers_are_refused(wrong):
    with pytest.raises(InputError, match=r"handover|slew limit|cross-fade"):
        as_handover(wrong)


def test_a_slew_limit_fits_the_action():
    with pytest.raises(InputError, match="3 entries, the action has 2"):
        drive(1, handover="slew:1,2,3", action_shape=(2,))
