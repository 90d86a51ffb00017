"""Comparisons of any environment, from Python and by units: the same numbers, saved blends, and what is refused."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from corridor import Corridor, drivers, fast, slow

import blendctl
from blendctl import Blender, run
from blendctl.bandit.rules import Fixed
from blendctl.cli.compare import compare as compare_command
from blendctl.errors import InputError
from blendctl.experiments.compare import Comparison
from blendctl.reports import build_report

CORRIDOR = Path(__file__).parents[1] / "support" / "corridor.py"
SPEC, PAIR = f"{CORRIDOR}:Corridor", (f"{CORRIDOR}:fast", f"{CORRIDOR}:slow")
QUICK = {"episodes": 4, "seed": 10, "block": 2}


def returns(table, method):
    return [row["return"] for row in table.episodes.to_pylist() if row["method"] == method]


def test_methods_meet_the_same_episodes_and_have_scores():
    seen = []
    table = blendctl.compare(
        Corridor, drivers(), methods=["random-episode", "shared", "simulated", "ceiling"], on_progress=seen.append,
        parameters={"simulated": {"prefer": 0.0, "horizon": 5}, "ceiling": {"horizon": 5, "every": 5, "samples": 1}},
        **QUICK,
    )  # fmt: skip
    assert table["performant"].share == 1.0
    assert (table["performant"].corner_score, table["safe"].corner_score) == (0.0, 0.0)
    both = set(returns(table, "performant") + returns(table, "safe"))
    assert set(returns(table, "random-episode")) <= both  # a coin per episode: an episode of one of the two
    assert table["simulated"].corner_score > 0.2  # it sees the danger
    frame = table.to_pandas()
    assert frame.loc["safe", "cost_mean"] == table["safe"].cost_mean
    assert frame.loc["safe", "cost_ci95_low"] < frame.loc["safe", "cost_mean"]
    assert "simulated" in str(table)
    assert seen[-1] == 1.0


def test_an_environment_a_function_and_a_name_have_the_same_episodes():
    options = {"methods": ["random"], "parameters": {"random": {"share": 0.5}}, "episodes": 3, "seed": 4}
    made = blendctl.compare(Corridor, drivers(), **options)
    env = Corridor()
    single = blendctl.compare(env, [fast, slow], **options)
    named = blendctl.compare(SPEC, PAIR, **options)
    for method in ("performant", "safe"):
        assert returns(made, method) == returns(single, method) == returns(named, method)
    assert returns(made, "random") == returns(named, "random")
    env.reset(seed=0)  # it is still open


def test_a_blend_is_one_more_row_and_starts_every_episode_as_it_was_saved():
    def frozen_fast(seed):
        return Blender(drivers(), ["fast", "slow"], features="one-hot", rule=Fixed(0), frozen=True, seed=seed)

    table = blendctl.compare(Corridor, drivers(), methods=[], blends={"always fast": frozen_fast}, **QUICK)
    assert returns(table, "always fast") == returns(table, "performant")
    assert table["always fast"].share == 1.0
    with pytest.raises(InputError, match="a blend has the name of a method: safe"):
        blendctl.compare(Corridor, drivers(), methods=[], blends={"safe": frozen_fast}, **QUICK)


def test_three_controllers_have_a_row_each():
    table = blendctl.compare(Corridor, [fast, lambda observation: [0.5], slow], methods=["random"], **QUICK)
    means = [table[name].return_mean for name in ("performant", "controller-2", "safe")]
    assert means == sorted(means, reverse=True)


def test_a_training_that_finds_too_little_leaves_its_method_out_unless_requested():
    env = Corridor()
    table = blendctl.compare(env, [fast, slow], episodes=1, parameters={"offline": {"episodes": 1, "every": 1000}})
    assert "too short for windows of 1000" in table.left_out["offline"]
    assert {"performant", "safe", "random"} <= {row.method for row in table.rows}
    with pytest.raises(InputError, match="too short for windows"):
        blendctl.compare(
            env, [fast, slow], methods=["offline"], episodes=1, parameters={"offline": {"episodes": 1, "every": 1000}}
        )


def test_looking_into_the_future_leaves_the_memory_of_controllers_alone():
    class Counting:
        def __init__(self):
            self.steps, self.longest = 0, 0

        def reset(self):
            self.steps = 0

        def act(self, observation, rng=None):
            self.steps += 1
            self.longest = max(self.longest, self.steps)
            return fast(observation)

    env, counting = Corridor(), Counting()
    table = blendctl.compare(
        env, [counting, slow], methods=["ceiling"], episodes=1,
        parameters={"ceiling": {"horizon": 5, "every": 5, "samples": 1}},
    )  # fmt: skip
    lengths = [row["length"] for row in table.episodes.to_pylist()]
    assert counting.longest <= max(lengths)


class Mute(Corridor):
    """Reports its cost by another name, and cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("no copies")

    def step(self, action):
        observation, reward, over, cut, info = super().step(action)
        return observation, reward, over, cut, {"damage": info["cost"]}


def test_what_an_environment_lacks_is_left_out_or_refused():
    with pytest.raises(InputError, match=r'no info\["cost"\]'):
        blendctl.compare(Mute, drivers(), methods=[], **QUICK)
    table = blendctl.compare(Mute, drivers(), cost="damage", episode_steps=30, **QUICK)
    assert {"simulated", "twin", "ceiling", "lookahead"} <= set(table.left_out)
    assert "copied exactly" in table.left_out["ceiling"]
    with pytest.raises(InputError, match="the method ceiling needs an environment that can be copied exactly"):
        blendctl.compare(Mute, drivers(), cost="damage", methods=["ceiling"], **QUICK)
    with pytest.raises(InputError, match="two controllers or more"):
        blendctl.compare(Corridor, [fast], **QUICK)
    with pytest.raises(KeyError, match="no method"):
        table["ceiling"]


def push_towards_upright(observation):
    """Return a discrete action."""
    return int(observation[2] + observation[3] > 0)


def push_right(observation):
    """Return a discrete action."""
    return 1


def test_discrete_actions_are_compared():
    def cost(observation, action, info):
        return float(action == 1)

    pole = blendctl.compare(
        lambda: gymnasium.make("CartPole-v1", max_episode_steps=30), [push_towards_upright, push_right],
        cost=cost, methods=["random", "paper"], judge_every=5, **QUICK,
    )  # fmt: skip
    assert pole["performant"].return_mean == 30.0
    assert pole["safe"].cost_mean == pole["safe"].return_mean  # every step costs
    assert np.isfinite(pole.episodes["correct_ratio"].to_pylist()).all()


def test_the_command_line_agrees_with_python_and_judges_a_saved_blend(tmp_path):
    saved = tmp_path / "saved"
    saved.mkdir()
    with Blender(drivers(), ["fast", "slow"], features="online", seed=0) as blender:
        for _ in run(Corridor(), blender, seed=0):
            pass
        blender.save(saved / "blend.safetensors")
    about = {"experiment": "blend", "world": SPEC, "controllers": list(PAIR), "names": ["fast", "slow"]}
    (saved / "run.json").write_text(json.dumps(about | {"options": {"features": "online"}}))
    words = [SPEC, "--controllers", *PAIR, "--methods", "random", "--episodes", 3, "--seed", 4, "--blend", saved]
    words += ["--engine", "inline", "--out", tmp_path / "out", "--json", tmp_path / "scores.json"]
    done = CliRunner().invoke(compare_command, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    scores = json.loads((tmp_path / "scores.json").read_text())["methods"]
    python = blendctl.compare(SPEC, PAIR, methods=["random"], episodes=3, seed=4, blends={"blend": saved})
    for name, row in scores.items():
        assert row["return_mean"] == python[name].return_mean, name
        assert row["cost_mean"] == python[name].cost_mean
    assert list(scores) == ["performant", "safe", "blend", "random"]
    page = build_report(tmp_path / "out")
    assert "Pairs: return of blend against each controller" in page
    assert "4 methods, 3 episodes" in page


def test_units_of_another_environment_know_its_arguments_and_files():
    from blendctl.envs.environment import EnvironmentSpec

    def keys(**changes):
        spec = EnvironmentSpec("Pendulum-v1", **{"arguments": {"g": 9.0}, "episode_steps": 5} | changes)
        plan = Comparison("Pendulum-v1", PAIR, ("random",), environment=spec)
        return {entry.unit.key for entry in plan.units()}

    assert keys() == keys()
    assert not keys() & keys(arguments={"g": 8.0})
    assert not keys() & keys(episode_steps=6)
