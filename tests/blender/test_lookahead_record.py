"""Records of a look-ahead blend: predicted values, estimates and the dial, in units of return and cost."""

import json

import numpy as np
import pyarrow.dataset
import pytest

from blendctl import Blender, run
from blendctl.blender.explain import explain_record, read_record
from blendctl.cli import main
from blendctl.controllers import load
from blendctl.controllers.lookahead_network import EpisodeMemory
from blendctl.controllers.zoo import PAIRS, find_lookahead
from blendctl.envs import SingleWorld
from blendctl.features.dial import Dial, card_points

BUDGET = 30.0
STEPS = 300


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """Drive with a budget; return the directory, the records and what the networks estimate at each decision."""
    folder = tmp_path_factory.mktemp("record")
    pair = [load(name) for name in PAIRS["PointGoal1"]]
    network, foreseen = find_lookahead(pair), {}
    remembered = EpisodeMemory(network)
    blender = Blender(pair, ["bold", "wary"], cost_budget=BUDGET, record=folder, seed=0)
    world, act = SingleWorld("PointGoal1", max_episode_steps=STEPS), blender.act

    def watched(observation):
        action = act(observation)
        if blender.choice.step == blender.step:
            memory = remembered.observe(observation[None], blender.choice.step - 1)
            values = network.foresee(observation, blender.choice.foresight.weight, memory)
            foreseen[blender.choice.stage] = np.stack([values.returns[0], values.costs[0]], axis=1)
        return action

    blender.act = watched
    with blender:
        records = list(run(world, blender, episodes=1, seed=0))
    world.close()
    return folder, records, foreseen


def test_a_record_has_what_the_networks_foresee_and_the_dial(driven):
    _, records, foreseen = driven
    spent = 0.0
    for record in records:
        foresight = record.foresight
        returns, costs = foreseen[record.stage].T
        assert foresight.foreseen[:, 0] == pytest.approx(returns, abs=1e-4)
        assert foresight.foreseen[:, 1] == pytest.approx(-costs, abs=1e-4)
        assert foresight.spent == spent
        spent += record.cost
    first = records[0]  # nothing is learned yet: the estimates are what the networks foresee
    assert first.decision.estimate * first.units == pytest.approx(first.foresight.foreseen, rel=1e-6)
    assert first.run_info.lookahead.cost_budget == BUDGET
    assert first.run_info.feature_name == "lookahead, cost budget 30"


def test_the_columns_on_disk_equal_the_records(driven):
    folder, records, _ = driven
    table = pyarrow.dataset.dataset(folder).to_table().to_pandas()
    assert table["cost_weight"].tolist() == [record.foresight.weight for record in records]
    assert table["spent"].tolist() == [record.foresight.spent for record in records]
    assert table["latched"].tolist() == [record.foresight.latched for record in records]
    assert table["unit_reward"].tolist() == [record.foresight.units[0] for record in records]
    assert table["foreseen_wary_minus_cost"].tolist() == [record.foresight.foreseen[1, 1] for record in records]


def test_a_decision_is_explained_in_units_of_return_and_cost(driven, capsys):
    folder, records, _ = driven
    step = records[30].step
    record = read_record(folder, step=step)
    assert record.reason == records[30].reason
    text, foresight = explain_record(record), record.foresight
    assert "features: lookahead, cost budget 30" in text
    assert f"a cost of 1 is worth a return of {foresight.weight:.3g}" in text
    assert f"budget: {foresight.spent:.4g} of 30 spent in this episode, {30 - foresight.spent:.4g} left" in text
    assert "unit: return and cost to go, discounted by" in text
    estimate = record.decision.estimate * record.units
    for arm, name in enumerate(("bold", "wary")):
        seen, mean = foresight.foreseen[arm], estimate[arm]
        assert f"  {name}: return to go predicted {seen[0]:.4g}, calibrated {mean[0]:.4g} (at best" in text
        assert f"cost to go predicted {-seen[1]:.4g}, calibrated {-mean[1]:.4g} (at best" in text
    assert (
        f"observed in its {record.steps} steps: reward {record.reward:.4g}, cost {record.cost:.4g}; with the value"
        in text
    )
    with pytest.raises(SystemExit):
        main(["explain", str(folder), "--step", str(step), "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["dial"]["left"] == BUDGET - foresight.spent
    assert facts["arms"]["wary"]["estimate"]["-cost"] == pytest.approx(estimate[1, 1])
    assert facts["arms"]["wary"]["foreseen"]["reward"] == foresight.foreseen[1, 0]


@pytest.mark.parametrize(("budget", "words"), [(0.0, "0 left; the safest setting drives"), (1e6, "1e+06 left")])
def test_the_latch_is_explained(budget, words, tmp_path):
    pair = [load(name) for name in PAIRS["PointGoal1"]]
    world = SingleWorld("PointGoal1", max_episode_steps=20)
    with Blender(pair, cost_budget=budget, record=tmp_path, seed=0) as blender:
        list(run(world, blender, episodes=1, seed=0))
    world.close()
    record = read_record(tmp_path, step=6)
    assert words in explain_record(record)
    network, weight = find_lookahead(pair), record.foresight.weight
    safest = Dial(network.weight_range, card_points(network.card), cost_budget=budget).safest_weight
    assert weight == pytest.approx(safest) if budget == 0 else network.weight_range[0] <= weight < safest
