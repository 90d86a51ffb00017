"""Training runs: resumed bit for bit, locked, and safe against crashes and full disks."""

import json

import numpy as np
import pytest
import torch
from slider import LENGTH, Slider

from blendctl.cli.train import commands_of
from blendctl.controllers import load
from blendctl.errors import FileFormatError, InputError, StateError
from blendctl.training import TrainConfig, Trainer, TrainingRun

SMALL = {"worlds": 4, "rollout": 30, "hidden": [16], "minibatch": 40, "passes": 2, "threads": 1}


def small(algo="ppo-lagrangian", **options):
    return TrainConfig.from_dict(SMALL | {"algo": algo, "steps": 6 * 120} | options)


def memory_trainer(config, **options):
    return Trainer(config, worlds=Slider(4, **options), encoding=Slider.encoding, episode_length=LENGTH)


@pytest.fixture
def in_slider(monkeypatch):
    """Train runs in the small worlds."""

    def build(config, **options):
        return Trainer(config, worlds=Slider(config.worlds), encoding=Slider.encoding, **options)

    monkeypatch.setattr("blendctl.training.run.Trainer", build)


def weights(trainer):
    return torch.cat([p.detach().reshape(-1) for p in trainer.policy.parameters()])


@pytest.mark.parametrize("algo", ["ppo", "ppo-lagrangian", "trpo", "trpo-lagrangian", "cpo"])
def test_a_restored_trainer_continues_bit_for_bit(algo):
    whole = memory_trainer(small(algo))
    rows = [r.to_dict() for r in whole.records()]
    first = memory_trainer(small(algo))
    for record in first.records():
        if record.update == 3:
            break
    tensors, state = first.tensors(), json.loads(json.dumps(first.state()))
    second = memory_trainer(small(algo))
    second.restore(tensors, state)
    rest = [r.to_dict() for r in second.records()]
    assert torch.equal(weights(whole), weights(second))
    for expected, actual in zip(rows[3:], rest, strict=True):
        for row in (expected, actual):
            row.pop("simulate_seconds"), row.pop("learn_seconds")
        assert expected == actual


def test_the_same_seed_repeats_a_run_and_another_seed_does_not():
    one, same, other = (memory_trainer(small(seed=s)) for s in (1, 1, 2))
    for t in (one, same, other):
        list(t.records())
    assert torch.equal(weights(one), weights(same))
    assert not torch.equal(weights(one), weights(other))


def test_a_run_resumed_from_disk_equals_one_that_never_stopped(tmp_path, in_slider):
    with TrainingRun(tmp_path / "whole", small()) as run:
        list(run.records())
        expected = weights(run.trainer)
    with TrainingRun(tmp_path / "halved", small()) as run:
        for record in run.records():
            if record.update == 2:
                run.checkpoint()
            if record.update == 4:
                break  # lost: after the last checkpoint
    with TrainingRun(tmp_path / "halved", resume=True) as run:
        assert run.trainer.update == 2
        list(run.records())
        assert torch.equal(weights(run.trainer), expected)
    lines = (tmp_path / "halved" / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [1, 2, 3, 4, 5, 6]
    rows = np.random.default_rng(0).normal(size=(3, 3))
    one, other = load(tmp_path / "whole"), load(tmp_path / "halved")
    assert np.array_equal(one.act(rows), other.act(rows))


def test_a_directory_in_use_or_already_used_is_refused(tmp_path, in_slider):
    with TrainingRun(tmp_path, small()), pytest.raises(StateError, match="in use"):
        TrainingRun(tmp_path, small())
    with pytest.raises(InputError, match="already holds a run"):
        TrainingRun(tmp_path, small())
    with pytest.raises(InputError, match="other options"):
        TrainingRun(tmp_path, small(seed=5), resume=True)
    with pytest.raises(InputError, match="no checkpoint to resume"):
        TrainingRun(tmp_path / "empty", resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path, in_slider):
    with TrainingRun(tmp_path, small()) as run:
        data = run.checkpoint_path.read_bytes()
        run.checkpoint_path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match="not a readable blendctl checkpoint"):
        TrainingRun(tmp_path, resume=True)


def test_a_checkpoint_without_a_part_of_its_state_is_refused(tmp_path, in_slider, monkeypatch):
    with TrainingRun(tmp_path, small()) as run:
        state = {name: value for name, value in run.trainer.state().items() if name != "noise_rng"}
        monkeypatch.setattr(run.trainer, "state", lambda: state)
        run.checkpoint()
    with pytest.raises(FileFormatError, match="is damaged or not a checkpoint: it lacks 'noise_rng'"):
        TrainingRun(tmp_path, resume=True)


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, in_slider, monkeypatch):
    with TrainingRun(tmp_path, small(), every=0.0) as run:
        good = run.checkpoint_path.read_bytes()

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(StateError, match="No space left"):
            list(run.records())
        assert run.checkpoint_path.read_bytes() == good
        assert not list(tmp_path.glob(".*.part"))


def test_a_run_that_diverges_stops_and_says_so():
    config = small("ppo", policy_lr=1e30, value_lr=1e30, max_grad=1e30)
    with pytest.raises(StateError, match="diverged"):
        list(memory_trainer(config).records())


def test_worlds_that_return_nan_stop_the_run():
    with pytest.raises(StateError, match="NaN"):
        list(memory_trainer(small(), poison_at=40).records())


def test_a_run_can_be_extended(tmp_path, in_slider):
    with TrainingRun(tmp_path, small()) as run:
        list(run.records())
    with TrainingRun(tmp_path, resume=True) as run:
        run.extend(8 * 120)
        assert [r.update for r in run.records()] == [7, 8]
    assert json.loads((tmp_path / "config.json").read_text())["steps"] == 8 * 120
    with TrainingRun(tmp_path, resume=True) as run:
        first, second = commands_of(run, None).splitlines()
    assert "--steps 720" in first
    assert second == "blendctl train PointGoal1 --algo ppo-lagrangian --seed 0 --resume --steps 960"


def test_short_training_episodes_count_costs_as_whole_ones_do():
    options = {"world": "PointGoal1", "algo": "trpo", "worlds": 4, "rollout": 40, "steps": 160, "hidden": [8]}
    run = Trainer(TrainConfig.from_dict(options | {"episode": 10, "threads": 1}))
    (record,) = run.records()
    assert record.episode_length == 10
    per_step = run.collector.rollout(40, discount=0.99, gae=0.95)
    assert per_step.episode_length == 1000
