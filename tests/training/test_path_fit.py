"""Paths of controllers: labels are the places that they reached, and a network learns them."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from blendctl.controllers import load, read_lookahead
from blendctl.envs import VectorWorld
from blendctl.errors import FileFormatError
from blendctl.training import LookAheadConfig, train_lookahead
from blendctl.training.encodings import world_encodings
from blendctl.training.lookahead_checkpoint import PATHS_FILE
from blendctl.training.lookahead_data import OptionCollector
from blendctl.training.path_fit import _drive_turn

PAIR = ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")
POINTS = 4
CONFIG = LookAheadConfig(
    steps=8_000,
    worlds=8,
    points=POINTS,
    path_share=3.0,
    hidden=(64,),
    members=1,
    minibatch=64,
    reuse=1,
    final_reuse=1,
)
ENCODINGS = world_encodings("PointGoal1")


def worlds(steps=1000):
    return VectorWorld("PointGoal1", 8, threads=1, autoreset_mode=AutoresetMode.SAME_STEP, max_episode_steps=steps)


def collector(environment):
    return OptionCollector(
        environment,
        [load(name) for name in PAIR],
        encode=ENCODINGS.context,
        hold=5,
        follow=0,
        discount=0.99,
        seed=0,
        declaration=ENCODINGS.declaration,
    )


def test_a_label_is_where_the_robot_was_after_each_option():
    environment = worlds()
    turns = collector(environment)
    arms = np.arange(8) % 2
    places, poses = [], []
    drive = turns.drive

    def watched(*args):
        state = environment.batch.worlds
        places.append(state.position[:, :2].copy())
        poses.append(state.rotation[:, :4:3].copy())  # cosine and sine of the heading
        return drive(*args)

    turns.drive = watched
    labels = _drive_turn(turns, arms, points=POINTS)
    environment.close()
    assert len(labels.arms) > 0.8 * 8 * (POINTS + 1)
    # All labels of the first world's first observation onwards are in order, a row per option and world.
    cosine, sine = poses[0].T
    dx, dy = (places[POINTS] - places[0]).T
    expected = np.stack([cosine * dx + sine * dy, cosine * dy - sine * dx], axis=1)
    assert labels.places[:8, POINTS - 1] == pytest.approx(expected, abs=0.01)
    assert labels.arms[:8].tolist() == arms.tolist()


def test_no_label_reaches_over_the_end_of_an_episode():
    environment = worlds(steps=20)
    labels = _drive_turn(collector(environment), np.zeros(8, np.intp), points=POINTS)
    environment.close()
    assert len(labels.arms) <= 8 * 1  # only the first observation has four whole options before the end
    assert np.hypot(*labels.places[:, -1].T).max(initial=0.0) < 1.0


def test_a_run_fits_paths_once_and_saves_them_with_the_networks(tmp_path):
    environment = worlds()
    settings = {"encoding": ENCODINGS.context, "declaration": ENCODINGS.declaration, "config": CONFIG, "out": tmp_path}
    network = train_lookahead([load(name) for name in PAIR], environment, **settings)
    written = (tmp_path / PATHS_FILE).read_bytes()
    again = train_lookahead([load(name) for name in PAIR], environment, resume=True, **settings)
    environment.close()
    assert network.card["path_errors"] == pytest.approx(network.paths.spread.tolist(), abs=1e-4)
    assert network.card["path_errors"][0] < 0.05  # m, after five steps
    assert (tmp_path / PATHS_FILE).read_bytes() == written
    read = read_lookahead(tmp_path)
    assert read.paths.declaration == network.paths.declaration == ENCODINGS.declaration
    observations = np.random.default_rng(0).uniform(0.0, 1.0, (3, 60))
    for other in (again, read):
        assert np.array_equal(other.foresee(observations, 0.1).scores, network.foresee(observations, 0.1).scores)


def test_damaged_paths_are_refused(tmp_path):
    environment = worlds()
    (tmp_path / PATHS_FILE).write_bytes(b"nonsense")
    with pytest.raises(FileFormatError, match=r"paths"):
        train_lookahead(
            [load(name) for name in PAIR],
            environment,
            encoding=ENCODINGS.context,
            declaration=ENCODINGS.declaration,
            config=CONFIG,
            out=tmp_path,
        )
    environment.close()
