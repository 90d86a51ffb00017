"""A blender compares its episodes with a certificate, and says when they no longer agree."""

import numpy as np
import pytest

from blendctl.certificates import Claim, certify
from blendctl.errors import FileFormatError

CLAIM = Claim(budget=5.0, cost_ceiling=100.0, return_range=(-100.0, 100.0))


def drive(blender, observation, *, episodes, cost):
    """Drive episodes of ten steps; return the events."""
    events = []
    for _ in range(episodes):
        for step in range(10):
            blender.act(observation)
            events.append(blender.choice.event)
            blender.observe(reward=1.0, cost=cost, done=step == 9)
    return [event for event in events if event]


@pytest.fixture
def certificate():
    return certify(np.full(300, 10.0), np.full(300, 2.0), CLAIM)


def test_episodes_as_certified_raise_no_event(make, observation, certificate):
    blender = make("fast", "safe", certificate=certificate)
    assert drive(blender, observation, episodes=30, cost=0.2) == []
    assert blender.monitor.status()["episodes"] == 30
    assert blender.monitor.alarms == []


def test_dearer_episodes_raise_an_event_and_the_robot_drives_on(make, observation, certificate, tmp_path):
    path = tmp_path / "certificate.json"
    certificate.write(path)
    blender = make("fast", "safe", certificate=path)
    events = drive(blender, observation, episodes=30, cost=3.0)
    assert len(events) == 2  # mean cost and share
    assert all("the certificate no longer holds" in event for event in events)
    assert blender.counts.events == 2
    assert len(blender.monitor.alarms) == 2


@pytest.mark.parametrize("cost", [-1.0, None])
def test_odd_feedback_does_not_stop_the_robot(make, observation, certificate, cost):
    blender = make("fast", "safe", certificate=certificate, objectives=["reward"])
    drive(blender, observation, episodes=2, cost=cost)
    assert blender.monitor.episodes == 2


def test_a_missing_certificate_is_an_error_at_once(make, tmp_path):
    with pytest.raises(FileFormatError, match="cannot read the certificate"):
        make("fast", "safe", certificate=tmp_path / "missing.json")
