"""Simulated contexts of a fit: they drive from copies of the environment, whatever its spaces are."""

import numpy as np
import pytest
from corridor import Corridor
from rooms import Rooms, always_0, always_1, fast, slow

from blendctl import Blender, fit, run
from blendctl.controllers import as_controller
from blendctl.episodes import drive_blend
from blendctl.fitting import stages
from blendctl.fitting.contexts import ContextTask, EnvSource, simulated_candidates


@pytest.mark.parametrize(
    ("make", "controllers", "objectives", "least"),
    [(Corridor, [fast, slow], ["reward", "-cost"], 20.0), (Rooms, [always_0, always_1], ["reward"], 7.0)],
    ids=["Corridor", "Rooms"],
)
def test_a_simulated_context_drives_the_environment(make, controllers, objectives, least):
    source = EnvSource(make)
    assert source.copy_seconds() > 0
    task = ContextTask(source, [as_controller(one) for one in controllers], 1.0, 50.0, seed=0)
    one = simulated_candidates((1, 3), length=50.0, arms=2, most_steps=1e9)[0]
    assert one.about() == {"kind": "simulated", "hold": 1, "prefer": 0.5, "horizon": 4, "dwell": 1}
    blender = one.blender(task, None, {"names": ["a", "b"], "objectives": objectives, "fallback": "a"})
    came = drive_blend(make(), blender, seed=0, episodes=3)
    assert np.mean([row["return"] for row in came]) >= least
    assert all(row["cost"] == 0 for row in came) or make is Corridor
    assert len({row["length"] for row in came}) == 1


def test_simulations_that_are_too_long_for_the_budget_are_left_out():
    found = simulated_candidates((1, 3), length=50.0, arms=2, most_steps=900)
    assert [(one.hold, one.horizon) for one in found] == [(1, 4), (3, 12)]


def test_a_fit_ships_a_simulated_context_where_it_is_best(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "SIMULATION_SHARE", 1e6)
    monkeypatch.setattr(stages, "LEARNED_MARGIN", -1e6)  # learned contexts lose
    card = fit(Corridor, [fast, slow], out=tmp_path, seed=0, steps=200, hold=5, episodes=3).card
    assert card["context"]["kind"] == "simulated"
    assert {one["kind"] for one in card["validation"]} == {"learned", "simulated"}
    with Blender.load(tmp_path, controllers=[fast, slow]) as blender:
        records = list(run(Corridor(), blender, episodes=3, seed=card["seeds"]["test"]))
    assert sum(record.reward for record in records) / 3 == pytest.approx(card["methods"]["blend"]["return_mean"])
