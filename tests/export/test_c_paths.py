"""Look-ahead networks with paths decide in C as in Python: the same map of the episode, to the bit."""

import subprocess

import numpy as np
import pytest
from compiled_blend import GCC, STRICT, CompiledBlend, constants, needs_gcc
from parity import Comparison, drive_world
from path_networks import network_of_world, random_network

from blendctl import Blender
from blendctl.controllers import load
from blendctl.controllers.encoding import Encoding
from blendctl.controllers.path_encoding import MapDeclaration
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import SingleWorld
from blendctl.features import LookAhead

CASES = {
    "PointGoal1 by preference": ("PointGoal1", {"prefer": 0.5}, {}),
    "PointGoal1 within a budget": ("PointGoal1", {"cost_budget": 5.0, "episode_steps": 240}, {}),
    "PointPush1, frozen": ("PointPush1", {"prefer": 0.7}, {"frozen": True}),
    "CarButton1 within a budget, frozen": ("CarButton1", {"cost_budget": 15.0, "episode_steps": 240}, {"frozen": True}),
    "CarButton1 in stages of another length": ("CarButton1", {"prefer": 0.3}, {"hold": 2, "safe_action": [0.0, 0.0]}),
}


def make_blender(world, dial, settings):
    pair = [load(name) for name in PAIRS[world]]
    feature = LookAhead(network_of_world(world, pair, seed=1), **dial)
    return Blender(
        pair, ["performant", "safe"], features=feature, stochastic=False, fallback="safe", seed=3, **settings
    )


def places_on_map(blender):
    """Return how many objects the map of a blender shows."""
    return int(blender.feature._memory._memory.maps.known.sum())


@needs_gcc
@pytest.mark.parametrize("case", CASES)
def test_a_blend_with_paths_drives_as_in_python(case, tmp_path):
    world, dial, settings = CASES[case]
    blender = make_blender(world, dial, settings)
    blender.export(tmp_path, world=world)
    compiled = CompiledBlend(tmp_path)
    assert compiled.selfcheck() == 0
    comparison = Comparison(blender, compiled)
    drive_world(comparison, world, steps=600, seed=11, missing=range(100, 103), episode_steps=240)
    comparison.expect_equal()
    assert comparison.psi == 0.0, "the map and the networks are equal to the bit"
    assert blender.episode == 2
    assert min(blender.counts.driven.values()) > 10, "both controllers drove"
    assert places_on_map(blender) >= 2


@needs_gcc
@pytest.mark.parametrize("world", ["PointGoal1", "CarButton1"])
def test_single_precision_changes_hardly_an_arm(world, tmp_path):
    blender = make_blender(world, {"prefer": 0.5}, {})
    blender.export(tmp_path, world=world, float32=True)
    comparison = Comparison(blender, CompiledBlend(tmp_path))
    drive_world(comparison, world, steps=600, seed=11, episode_steps=240)
    assert comparison.arms_differ <= 5, "one stage"
    assert comparison.psi < 1e-3


@needs_gcc
def test_a_copied_state_continues_with_its_map(tmp_path):
    blender = make_blender("PointGoal1", {"prefer": 0.5}, {})
    blender.export(tmp_path, world="PointGoal1")
    compiled = CompiledBlend(tmp_path)
    rows = drive("PointGoal1", blender, steps=120)

    def contexts(rows):
        found = []
        for row in rows:
            compiled.act(row)
            found.append(compiled.psi)
        return np.array(found)

    contexts(rows[:60])
    kept = compiled.state.raw
    first = contexts(rows[60:])
    compiled.state.raw = kept
    np.testing.assert_array_equal(first, contexts(rows[60:]))
    compiled.library.blend_init(compiled.state)
    assert np.abs(first - contexts(rows[60:])).max() > 1e-3, "the map of the first half is missing"


def drive(world, blender, *, steps):
    """Return the observations of a drive (steps, observation_size)."""
    env = SingleWorld(world)
    rows = [env.reset(seed=5)[0]]
    for _ in range(steps - 1):
        rows.append(env.step(blender.act(rows[-1]))[0])
    env.close()
    return np.array(rows)


REPLAY = """
#include "blend.h"
static const double rows[%d][BLEND_OBSERVATION_SIZE] = {%s};
int main(void)
{
    static blend_memory memory;
    blend_state *s = (blend_state *)&memory;
    const double feedback[BLEND_OBJECTIVES] = {0.1, -1.0};
    double action[BLEND_ACTION_SIZE];
    unsigned i;
    if (blend_state_size() > sizeof memory)
        return 1;
    blend_init(s);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        blend_act(s, rows[i], action);
        blend_observe(s, feedback);
        if (i %% 90 == 89)
            blend_end_episode(s);
    }
    return blend_selfcheck();
}
"""


@needs_gcc
def test_sanitizers_find_nothing_in_the_map(tmp_path):
    blender = make_blender("CarButton1", {"prefer": 0.5}, {})
    blender.export(tmp_path, world="CarButton1")
    rows = drive("CarButton1", blender, steps=200)
    rng = np.random.default_rng(0)
    for row in rows[120::9]:  # what no world shows
        row[rng.integers(len(row), size=3)] = rng.choice([1e300, -1e300, -1.0, 1e8], 3)
    text = ",\n".join("{" + ", ".join(map(repr, row.tolist())) + "}" for row in rows)
    (tmp_path / "main.c").write_text(REPLAY % (len(rows), text))
    for options in (
        ("-O1", "-g", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
        ("-O3",),
    ):
        command = [GCC, *STRICT, *options, tmp_path / "main.c", tmp_path / "blend.c", "-o", tmp_path / "program", "-lm"]
        built = subprocess.run(command, capture_output=True, text=True)
        assert (built.returncode, built.stderr) == (0, "")
        done = subprocess.run([tmp_path / "program"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@needs_gcc
def test_paths_without_a_map_are_exported(tmp_path):
    pair = [load(name) for name in PAIRS["PointGoal1"]]
    encoding = Encoding(60, (1.0,) * 60, ())
    nothing = MapDeclaration(60, period=0.02, tilts=False, kinds=(), avoided=(), targets=())
    network = random_network(np.random.default_rng(0), pair, encoding=encoding, declaration=nothing)
    blender = Blender(pair, features=LookAhead(network), stochastic=False, seed=0)
    blender.export(tmp_path)
    comparison = Comparison(blender, CompiledBlend(tmp_path))
    for row in np.random.default_rng(1).uniform(0.0, 1.0, (60, 60)):
        comparison.step(row)
        comparison.observe(0.1, 0.0)
    comparison.expect_equal()


def test_the_sizes_include_the_map(tmp_path):
    blender = make_blender("CarButton1", {"prefer": 0.5}, {})
    blender.export(tmp_path / "paths")
    plain = Blender(blender.controllers, features="lookahead", stochastic=False, seed=0)
    plain.export(tmp_path / "plain")
    more = constants(tmp_path / "paths")["BLEND_STATE_BYTES"] - constants(tmp_path / "plain")["BLEND_STATE_BYTES"]
    assert 3 * 24 * 19 * 8 < more < 3 * 24 * 19 * 8 + 3000, "the views of hazards, gremlins and buttons are most of it"
