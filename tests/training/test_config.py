"""Options: a round trip through the file, and clear errors."""

import json
from dataclasses import fields

import pytest

from blendctl.errors import FileFormatError, InputError
from blendctl.training import ALGORITHMS, TrainConfig


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_a_configuration_survives_its_file(algo, tmp_path):
    config = TrainConfig.from_dict({"algo": algo, "hidden": [64, 32], "steps": 3e6, "cost_limit": 10})
    path = tmp_path / "config.json"
    path.write_text(config.to_json())
    assert TrainConfig.from_json(path) == config
    assert config.steps == 3_000_000
    assert config.hidden == (64, 32)


def test_an_algorithm_has_its_own_defaults_and_explicit_values_win():
    assert TrainConfig.from_dict({"algo": "trpo"}).rollout != TrainConfig.from_dict({"algo": "ppo"}).rollout
    assert TrainConfig.from_dict({"algo": "trpo", "target_kl": 0.5}).target_kl == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algo": "pppo"}, 'did you mean "ppo"'),
        ({"polcy_lr": 1.0}, 'did you mean "policy_lr"'),
        ({"steps": 0}, "allowed: at least 1"),
        ({"steps": 1.5}, "expected int"),
        ({"steps": "many"}, "expected int"),
        ({"steps": float("nan")}, "expected int"),
        ({"discount": 1.0}, "allowed: 0 to below 1"),
        ({"anneal": 1}, "expected bool"),
        ({"hidden": []}, "256,256"),
        ({"cost_limit": -1}, "0 or more"),
        ({"encoding": "nice"}, "full, near or raw"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(options, message):
    with pytest.raises(InputError, match=message):
        TrainConfig.from_dict(options)


@pytest.mark.parametrize("text", ["", "[1]", "{", json.dumps("ppo")])
def test_a_file_that_is_not_a_configuration_is_refused(text, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"config\.json"):
        TrainConfig.from_json(path)


@pytest.mark.parametrize("name", [one.name for one in fields(TrainConfig) if isinstance(one.default, int | float)])
def test_every_number_has_a_limit(name):
    if name not in ("anneal", "log_std"):
        with pytest.raises(InputError, match=f"option {name} is .*allowed: "):
            TrainConfig.from_dict({name: -1})
