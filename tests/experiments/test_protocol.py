"""The paper's protocol: which units, with which seeds, for which controllers."""

import pytest

from blendctl.errors import InputError
from blendctl.experiments.protocol import Settings, first_seed, pair_of, plan

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")


def settings(**changes):
    return Settings(worlds={"PointGoal1": PAIR}, **changes)


def test_every_role_has_the_same_episodes_and_the_chain_is_whole():
    units, places = plan(settings(data_points=12, traces=2))
    by_place = {place: unit for unit in units for place in places[unit.key]}
    for trace in range(2):
        for point in range(12):
            here = {p.role: u for p, u in by_place.items() if (p.trace, p.data_point) == (trace, point)}
            assert {u.parameters["first_seed"] for u in here.values()} == {first_seed(0, trace, point)}
            assert ("random" in here) == (point <= 10)
            chained = here["blended"].after
            assert (chained is None) == (point == 0)
            if chained is not None:
                assert places[chained.key] == [("PointGoal1", trace, "blended", point - 1)]
    assert len({u.parameters["first_seed"] for u in units}) == 24


def test_more_data_points_and_traces_change_nothing_of_those_before():
    few, _ = plan(settings(data_points=2))
    many, _ = plan(settings(data_points=110, traces=3))
    assert {u.key for u in few} < {u.key for u in many}
    assert settings(data_points=2).identity() == settings(data_points=110, traces=3).identity()


def test_another_seed_option_or_controller_is_another_unit():
    keys = [
        {u.key for u in plan(s)[0]}
        for s in (
            settings(data_points=1),
            settings(data_points=1, seed=1),
            settings(data_points=1, episodes=3),
            Settings(worlds={"PointGoal1": ("pure-pursuit", "potential-field")}, data_points=1),
        )
    ]
    assert not set.intersection(keys[0], set.union(*keys[1:]))
    blended = plan(settings(data_points=1, options={"noise": 0.01}))[0][0]
    assert blended.key not in keys[0]


def test_the_papers_pair_is_taken_from_the_zoo():
    assert pair_of("blendctl/PointGoal1-v0") == ("PointGoal1", PAIR)
    assert pair_of("PointGoal1", ("pure-pursuit", "stop")) == ("PointGoal1", ("pure-pursuit", "stop"))


def test_unknown_worlds_and_controllers_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match='did you mean "PointGoal1"'):
        pair_of("PointGaol1")
    with pytest.raises(InputError, match="expected two controllers"):
        pair_of("PointGoal1", ("pure-pursuit",))
    with pytest.raises(InputError, match=r"the paper has no pair .* CarGoal2"):
        pair_of("CarGoal2")
    with pytest.raises(InputError, match='there is no controller "PointGoal1/pqo"'):
        pair_of("PointGoal1", ("PointGoal1/pqo", "PointGoal1/ppo"))
    with pytest.raises(InputError, match="Use a controller trained for it"):
        pair_of("CarButton1", PAIR)


def test_wrong_settings_are_refused():
    with pytest.raises(InputError, match="traces must be a whole number >= 1, actually: 0"):
        settings(traces=0)
    with pytest.raises(InputError, match=r'features must not learn .* "online"'):
        settings(features="online")
    with pytest.raises(InputError, match="at least one world"):
        Settings(worlds={})
