"""The whole experiment, small: tables, resuming, what a chain hands on."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from blendctl import Blender, pareto
from blendctl.bandit import BlendingBandit
from blendctl.blender.compiled_loop import empty_stages
from blendctl.controllers import load, open_controller
from blendctl.envs import SingleWorld
from blendctl.experiments import Store
from blendctl.experiments.baseline_units import baseline
from blendctl.experiments.blended import EpisodeAggregator, blended
from blendctl.experiments.file_text import file_text, read_file_text
from blendctl.experiments.protocol import AUTHORS, Settings, plan
from blendctl.experiments.reproduce import Reproduction
from blendctl.experiments.store import decode, encode
from blendctl.experiments.tables import EPISODES, POINTS, Tables

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")


def small(**changes):
    given = {"worlds": {"PointGoal1": PAIR}, "data_points": 2, "episodes": 2, "steps": 15}
    return Settings(**(given | changes))


def run(path, settings, **where):
    store = Store(path, "reproduce", identity=settings.identity())
    reproduction = Reproduction(settings, store)
    updates = list(reproduction.run(**({"engine": "inline"} | where)))
    store.close()
    return reproduction, updates


def tables(path):
    return [pq.read_table(path / name) for name in ("points.parquet", "episodes.parquet")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole")
    reproduction, _ = run(path, small())
    reproduction.verdict()
    return path


def test_the_tables_are_tidy_and_whole(whole):
    points, episodes = tables(whole)
    assert points.schema.equals(POINTS)
    assert episodes.schema.equals(EPISODES)
    assert points.num_rows == 4 * 2
    assert episodes.num_rows == 4 * 2 * 2
    rows = [row for row in points.to_pylist() if row["role"] == "blended"]
    assert [row["interactions"] for row in rows] == [30, 60]
    assert 0 <= rows[1]["correct_ratio"] <= 1
    assert rows[0]["max_loss"] <= rows[1]["max_loss"] <= rows[1]["max_loss_bound"]
    assert rows[1]["pareto_regret"] <= rows[1]["regret_bound"]
    assert 0 <= rows[1]["max_loss_expected_mean"] <= rows[1]["max_loss_bound_mean"]
    assert rows[1]["theta_error"] == pytest.approx(np.linalg.norm(np.subtract(rows[1]["theta"], rows[1]["theta_star"])))
    alone = [row for row in points.to_pylist() if row["role"] == "safe"]
    assert alone[0]["correct_ratio"] is None
    by_role = {}
    for row in episodes.to_pylist():
        by_role.setdefault(row["role"], []).append(row["seed"])
    assert len({tuple(seeds) for seeds in by_role.values()}) == 1  # all roles on the same episodes


def test_noise_adds_to_the_loss_and_not_to_the_expected_loss():
    rng, n = np.random.default_rng(0), 3000
    controllers = [load(name) for name in PAIR]
    with Blender(controllers, features="predictions", seed=0) as blender:
        aggregator = EpisodeAggregator(blender)
    psi = rng.uniform(-0.5, 0.5, (n, 2, 2))
    truth = psi @ np.array([[0.8, 0.1], [0.0, 0.9]]) + 0.3 * rng.standard_normal((n, 2, 2))
    best = pareto.maximal_loss(psi @ np.array([[0.8, 0.1], [0.0, 0.9]])).argmin(axis=1)
    wrong = rng.random(n) < 0.1
    arm = np.where(wrong, 1 - best, best)
    made = empty_stages(n, 2)._replace(arm=arm, truth=truth, psi=psi)
    aggregator.add_episode(made)
    exact = pareto.maximal_loss(psi @ np.array([[0.8, 0.1], [0.0, 0.9]]))[np.arange(n), arm].sum()
    assert aggregator.expected_loss(1.0) == {"sum": pytest.approx(exact, rel=0.02), "stages": n}
    assert aggregator.table()["loss"][0].as_py() > 1.3 * exact


def test_the_verdict_is_json_with_what_was_promised(whole):
    summary = json.loads((whole / "verdict.json").read_text())["PointGoal1"]
    for role in ("blended", "safe", "performant"):
        assert {"return_mean", "cost_mean"} <= summary[role].keys()
    assert set(summary["claims"]) == {
        "return_above_safe", "cost_below_performant", "correct_above_half", "correct_above_random",
    }  # fmt: skip
    assert summary["milliseconds_per_iteration"]["paper"] == 2.0


def test_an_interrupted_run_goes_on_and_ends_the_same(whole, tmp_path):
    settings = small()
    store = Store(tmp_path, "reproduce", identity=settings.identity())
    running = Reproduction(settings, store).run(engine="inline")
    next(running)
    next(running)
    running.close()
    store.close()
    assert pq.read_table(tmp_path / "episodes.parquet").num_rows == 4
    _, updates = run(tmp_path, settings)
    assert [u.stored for u in updates].count(True) == 2
    assert all(a.equals(b) for a, b in zip(tables(whole), tables(tmp_path), strict=True))


def test_processes_give_the_same_to_the_bit(whole, tmp_path):
    run(tmp_path, small(), engine="processes", workers=2)
    assert all(a.equals(b) for a, b in zip(tables(whole), tables(tmp_path), strict=True))


def test_a_run_may_grow(whole, tmp_path):
    run(tmp_path, small(data_points=1))
    _, updates = run(tmp_path, small())
    assert [u.stored for u in updates].count(True) == 4
    assert all(a.equals(b) for a, b in zip(tables(whole), tables(tmp_path), strict=True))


def test_data_points_that_a_role_leaves_out_do_not_shift_the_others():
    settings = small(data_points=21)
    result = baseline(
        {"world": "PointGoal1", "controllers": ["pure-pursuit", "stop"], "first_seed": 3, "episodes": 2,
         "noise_seed": 1, "steps": 5}, None,
    )  # fmt: skip
    made = Tables(settings)
    for places in plan(settings)[1].values():
        if places[0].role in ("safe", "random"):
            made.add(places, result)
    rows = made.points().to_pylist()
    by_role = {
        role: {row["data_point"]: row["interactions"] for row in rows if row["role"] == role}
        for role in ("safe", "random")
    }
    assert list(by_role["random"]) == [*range(11), 20]
    assert by_role["safe"][20] == 21 * 2 * 5
    assert by_role["random"].items() <= by_role["safe"].items()
    losses = [row["max_loss"] for row in rows if row["role"] == "random"]
    assert losses[11] == pytest.approx(21 * losses[0])  # the sums belong to the axis that they stand on


def test_the_time_per_iteration_is_that_of_this_session(whole, tmp_path):
    slow = small(data_points=1)
    reproduction, _ = run(tmp_path, slow)
    for path in (tmp_path / "units").iterdir():  # as if an earlier session had been slow
        unit = next(u for u in reproduction.units if u.key == path.stem)
        result = decode(path.read_bytes(), key=unit.key)
        result.timing["seconds"] = 1e6
        path.write_bytes(encode(unit.key, unit.to_json(), result))
    again, _ = run(tmp_path, slow)
    assert again.milliseconds()["PointGoal1"]["measured"] > 1e6  # no other measurement exists
    grown, _ = run(tmp_path, small())
    assert grown.milliseconds()["PointGoal1"]["measured"] < 1e6


def test_a_chain_hands_on_its_learner():
    first, second, *_ = plan(small())[0]
    one = blended(first.parameters, None)
    two = blended(second.parameters, one)
    assert one.values["stage"] == 30
    assert two.values["stage"] == 60
    alone = blended(second.parameters, None)
    assert alone.values["stage"] == 30
    assert not two.same_as(alone)
    assert read_file_text(two.values["learner"], BlendingBandit.load).theta.tolist() == two.values["theta"]
    for _ in range(5):  # saving it does not depend on chance
        assert file_text(read_file_text(two.values["learner"], BlendingBandit.load).save) == two.values["learner"]


def test_the_authors_way_differs():
    first = plan(small())[0][0]
    authors = plan(small(context=AUTHORS["context"], options=AUTHORS["options"]))[0][0]
    ours, theirs = blended(first.parameters, None), blended(authors.parameters, None)
    learner = read_file_text(theirs.values["learner"], BlendingBandit.load)
    assert (learner.options.noise, learner.options.delta, learner.options.radius) == (0.01, 0.2, "paper")
    assert not ours.same_as(theirs)


def test_a_controller_alone_equals_driving_by_hand():
    parameters = {
        "world": "PointGoal1", "controllers": ["pure-pursuit"], "first_seed": 7, "episodes": 2, "noise_seed": 0,
        "steps": 40,
    }  # fmt: skip
    table = baseline(parameters, None).table
    world, driver = (
        SingleWorld("PointGoal1", max_episode_steps=40),
        open_controller("pure-pursuit", world="PointGoal1"),
    )
    for episode in range(2):
        observation, _ = world.reset(seed=7 + episode)
        total = paid = 0.0
        ended = False
        while not ended:
            observation, reward, terminated, truncated, info = world.step(driver.act(observation))
            total, paid, ended = total + reward, paid + info["cost"], terminated or truncated
        assert table["return"][episode].as_py() == pytest.approx(total, abs=1e-12)
        assert table["cost"][episode].as_py() == paid
    world.close()


def test_random_switching_between_one_controller_twice_is_always_correct():
    parameters = {
        "world": "PointGoal1", "controllers": ["pure-pursuit", "pure-pursuit"], "first_seed": 3, "episodes": 3,
        "noise_seed": 1, "steps": 30,
    }  # fmt: skip
    table = baseline(parameters, None).table
    assert table["correct"].to_pylist() == table["judged"].to_pylist() == [30, 30, 30]
    assert sum(table["loss"].to_pylist()) == 0.0
    assert 0 < sum(table["switches"].to_pylist()) < 87
