"""`blendctl fit`: from an environment and controllers to files, a verdict, and a blend that drives."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from corridor import LENGTH, Corridor
from rooms import Rooms, always_0, always_1, fast, slow

from blendctl import Blender, fit, run
from blendctl.cli import main
from blendctl.errors import InputError
from blendctl.reports import build_report

SMALL = {"seed": 3, "steps": 400, "hold": 5}

FILE = """
import sys
sys.path.append({support!r})
from corridor import Corridor

def make(length=50):
    return Corridor()

def fast(observation):
    return [1.0]

def slow(observation):
    return [0.1]

def price(observation, action, info):
    return 2.0 * info["cost"]
"""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A fit by the command line of environment, controllers and cost in a file."""
    folder = tmp_path_factory.mktemp("fit")
    support = Path(sys.modules[Corridor.__module__].__file__).parent
    (folder / "mine.py").write_text(FILE.format(support=str(support)))
    words = [
        "fit", f"{folder}/mine.py:make", "--controllers", f"{folder}/mine.py:fast", f"{folder}/mine.py:slow",
        "--cost", f"{folder}/mine.py:price", "--env-arg", "length=50", "--out", folder / "out", "--seed", 3,
        "--steps", 600, "--hold", 5, "--workers", 1, "--json", folder / "copy.json",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 0
    return folder


def test_a_pair_that_trades_return_for_cost_gets_a_blend(fitted):
    card = json.loads((fitted / "out" / "card.json").read_text())
    assert card == json.loads((fitted / "copy.json").read_text())
    assert card["verdict"] == "blend"
    assert card["names"] == ["fast", "slow"]
    # Danger half of the time: fast earns 37.5 at a cost of 50, slow a tenth of both; the best of both is 26.3 at 5.
    assert card["corner_score"] > 0.3
    assert card["corner_score_ci95"][0] > 0
    for name in ("blend", "fast", "slow", "coin per step", "coin per episode", "threshold", "shared"):
        row = card["methods"][name]
        for measure in ("return", "cost"):
            low, high = row[f"{measure}_ci95"]
            assert low <= row[f"{measure}_mean"] <= high
    assert card["methods"]["slow"]["cost_mean"] == pytest.approx(0.1 * card["methods"]["fast"]["cost_mean"])
    seeds = sorted(card["seeds"].values())
    assert min(np.diff(seeds)) > card["episodes"], "stages share no episode"


def test_the_page_has_the_verdict_and_loads_nothing(fitted):
    page = (fitted / "out" / "report.html").read_text()
    assert "Use the blend" in page
    assert "default-src 'none'" in page
    assert "coin per episode" in page
    assert build_report(fitted / "out") == page


def test_the_directory_drives_the_blend(fitted):
    card = json.loads((fitted / "out" / "card.json").read_text())

    def price(observation, action, info):
        return 2.0 * info["cost"]

    with Blender.load(fitted / "out", controllers=[fast, slow]) as blender:
        assert blender.hold == 5
        assert blender.guard is not None
        records = list(run(Corridor(), blender, episodes=card["episodes"], seed=card["seeds"]["test"], cost=price))
    total = sum(record.reward for record in records) / card["episodes"]
    assert total == pytest.approx(card["methods"]["blend"]["return_mean"]), "as it was judged"
    with pytest.raises(InputError, match="run code"):
        Blender.load(fitted / "out")


def test_the_dial_of_a_loaded_blend_can_be_set(fitted):
    costs = []
    for setting in ({"prefer": 1.0}, {"prefer": 0.0}, {"cost_budget": 1e6}):
        with Blender.load(fitted / "out", controllers=[fast, slow], **setting) as blender:
            assert blender.feature.dial.episode_steps == LENGTH, "as measured, not 1000"
            costs.append(sum(record.cost for record in run(Corridor(), blender, episodes=4, seed=0)))
    assert costs[0] > costs[1]
    assert costs[2] > costs[1]


def test_equal_controllers_make_no_difference(tmp_path):
    result = fit(Corridor, [fast, lambda observation: [1.0]], names=["one", "other"], out=tmp_path, **SMALL)
    assert result.verdict == "no difference"
    assert result.corner_score is None
    assert "No difference shown" in (tmp_path / "report.html").read_text()


def test_a_controller_that_is_better_in_everything_is_the_verdict(tmp_path):
    class Detour(Corridor):
        def step(self, action):
            observation, reward, ended, over, _ = super().step(action)
            return observation, reward, ended, over, {"cost": 1.0 - float(action[0])}

    result = fit(Detour, [slow, fast], out=tmp_path, **SMALL)
    assert result.verdict == "fast"
    assert "Use fast" in result.card["words"]
    assert result.card["fallback"] == "fast"
    guard = json.loads((tmp_path / "run.json").read_text())["options"]["guard"]
    returns, costs = (np.mean(guard["outcomes"]["fast"], axis=0) * [1, -1]).tolist()
    row = result.card["methods"]["fast"]
    assert (returns, costs) == pytest.approx((row["return_mean"], row["cost_mean"]))


def test_without_a_cost_returns_are_compared_and_spaces_of_any_kind_are_encoded(tmp_path):
    result = fit(Rooms(), [always_0, always_1], out=tmp_path, seed=0, steps=1500, hold=1)
    card = result.card
    assert card["objectives"] == ["reward"]
    assert result.verdict == "blend"
    assert result.corner_score is None
    assert card["methods"]["blend"]["return_mean"] > 8
    with Blender.load(tmp_path, controllers=[always_0, always_1]) as blender:
        records = list(run(Rooms(), blender, episodes=5, seed=0))
    assert sum(record.reward for record in records) > 40


def test_context_hold_dwell_rule_and_dial_are_chosen_on_validation_episodes(tmp_path):
    middle = [fast, lambda observation: [0.5], slow]
    card = fit(Corridor, middle, names=["fast", "middle", "slow"], out=tmp_path, seed=3, steps=400).card
    tried = card["validation"]
    changed = [{name for name in one if one[name] != tried[0].get(name)} - {"utility"} for one in tried]
    assert {"hold"} in changed
    assert any("dwell" in names for names in changed)
    assert any(one.get("rule") == "maximal-loss" for one in tried)
    assert any("prefer" in names for names in changed)
    chosen = [one["utility"] for one in tried if {**one, "utility": 0} == {**card["context"], "utility": 0}]
    assert chosen == pytest.approx([max(one["utility"] for one in tried)], abs=0.031), "the best, a margin for learned"
    with Blender.load(tmp_path, controllers=middle) as blender:
        assert (blender.hold, blender.dwell) == (card["context"]["hold"], card["context"]["dwell"])


def test_the_same_seed_fits_the_same_blend(tmp_path):
    cards = [fit(Corridor, [fast, slow], out=tmp_path / name, **SMALL).card for name in "ab"]
    for card in cards:
        card.pop("seconds")
    assert cards[0] == cards[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": "csot"}, r'no entry "csot".*did you mean "cost"'),
        ({"steps": 100, "minutes": 1.0}, "use one of them"),
        ({"names": ["blend", "slow"]}, "different words, none of blend"),
        ({"names": ["slow"]}, "2 different words"),
        ({"episodes": 1}, "episodes must be"),
        ({"workers": 2}, "need an environment and controllers by name"),
    ],
)
def test_wrong_arguments_are_named(change, message, tmp_path):
    with pytest.raises(InputError, match=message):
        fit(Corridor, [fast, slow], **{"out": tmp_path, "steps": 100} | change)


def test_one_controller_is_refused(tmp_path):
    with pytest.raises(InputError, match="two controllers or more"):
        fit(Corridor, [fast], out=tmp_path, steps=100)


def test_an_earlier_fit_is_kept_unless_replaced(fitted):
    with pytest.raises(InputError, match="holds an earlier run"):
        fit(Corridor, [fast, slow], out=fitted / "out", steps=100)
    assert (fitted / "out" / "card.json").exists()
