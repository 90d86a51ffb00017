"""Record a long drive of a blender, and replay it in the exported C form with one call."""

import ctypes
from dataclasses import dataclass

import numpy as np
from compiled_blend import CAUSES, OBSERVED, compile_blend, constants

from blendctl.errors import StateError

CODES = {words: code for code, words in OBSERVED.items()}
SOURCE = """
#include "blend.h"

void replay(int64_t steps, const double *observations, const double *feedback, const signed char *ended, int *arms,
    double *actions, int *causes, double *psi, double *ucb, int *observed)
{
    static blend_memory memory;
    blend_state *state = (blend_state *)&memory;
    blend_info info;
    int64_t t;
    int i;
    blend_init(state);
    for (t = 0; t < steps; t++) {
        arms[t] = blend_act(state, observations + t * BLEND_OBSERVATION_SIZE, actions + t * BLEND_ACTION_SIZE);
        blend_inspect(state, &info);
        causes[t] = info.cause;
        for (i = 0; i < BLEND_ARMS * BLEND_FEATURES; i++)
            *psi++ = info.psi[i / BLEND_FEATURES][i % BLEND_FEATURES];
        for (i = 0; i < BLEND_ARMS * BLEND_OBJECTIVES; i++)
            *ucb++ = info.ucb[i / BLEND_OBJECTIVES][i % BLEND_OBJECTIVES];
        observed[t] = blend_observe(state, feedback + t * BLEND_OBJECTIVES);
        if (ended[t])
            blend_end_episode(state);
    }
}
"""


@dataclass
class Drive:
    """T control steps; NaN where there was no decision."""

    observations: np.ndarray  # (T, observation_size)
    feedback: np.ndarray  # (T, objectives) as maximised, unscaled
    ended: np.ndarray  # (T,) whether the step ended an episode
    arms: np.ndarray  # (T,)
    actions: np.ndarray  # (T, action_size)
    causes: np.ndarray  # (T,) 0 if the stage was held
    psi: np.ndarray  # (T, arms, features)
    ucb: np.ndarray  # (T, arms, objectives)
    observed: np.ndarray  # (T,)


def record_drive(blender, env, *, steps, seed, sizes, missing=()):
    """Drive an environment by a blender; in the steps `missing` the observation is NaN."""
    arms, (n_obs, n_act) = len(blender.names), sizes
    d, m = blender.feature.size, len(blender.objectives.names)
    drive = Drive(
        np.empty((steps, n_obs)), np.empty((steps, m)), np.zeros(steps, np.int8), np.full(steps, -1, np.intc),
        np.zeros((steps, n_act)), np.zeros(steps, np.intc), np.full((steps, arms, d), np.nan),
        np.full((steps, arms, m), np.nan), np.empty(steps, np.intc),
    )  # fmt: skip
    lost = set(missing)
    observation, _ = env.reset(seed=seed)
    for t in range(steps):
        row = drive.observations[t]
        row[:] = observation
        if t in lost:
            row[t % n_obs] = np.nan
        try:
            drive.actions[t] = blender.act(row)
        except StateError:
            pass  # nobody can drive, and there is no safe action: C writes zeros
        else:
            _keep_decision(blender, drive, t)
        observation, reward, terminated, truncated, info = env.step(drive.actions[t])
        costs = {name: value for name, value in info.items() if name.startswith("cost")}
        signals = {"reward": float(reward), "cost": 0.0} | costs
        drive.feedback[t] = blender.objectives(signals)
        drive.observed[t] = CODES[blender.observe(**signals)]
        if terminated or truncated:
            drive.ended[t] = True
            blender.end_episode()
            seed += 1
            observation, _ = env.reset(seed=seed)
    env.close()
    return drive


def _keep_decision(blender, drive, t):
    choice = blender.choice
    drive.arms[t] = choice.arm
    if choice.step == blender.step:
        drive.causes[t] = CAUSES.index(choice.cause)
        if choice.features is not None:
            drive.psi[t] = choice.features
        if choice.decision is not None:
            drive.ucb[t, list(choice.asked)] = choice.decision.ucb


@dataclass
class Difference:
    """What differs between a drive and its replay; numbers relative where they are larger than 1."""

    arms: int  # control steps with another arm
    psi: float
    indices: float
    actions: float

    def expect_none(self, tolerance):
        """Assert equal arms, actions equal up to the last bit of sines, and psi and indices within the tolerance."""
        assert self.arms == 0
        assert self.actions <= 1e-15  # NumPy and the C library may round a sine differently
        assert max(self.psi, self.indices) <= tolerance


def replay_drive(drive, folder, *, exact):
    """Replay a drive with the files of an export; `exact` also asserts equal causes and treatment of feedback."""
    sizes, steps = constants(folder), len(drive.arms)
    (folder / "replay.c").write_text(SOURCE)
    library = ctypes.CDLL(str(compile_blend(folder, "-O2", f"{folder / 'replay.c'}")))
    arms, causes, observed = (np.empty(steps, np.intc) for _ in range(3))
    actions, psi, ucb = (np.empty_like(one) for one in (drive.actions, drive.psi, drive.ucb))
    assert psi.shape[1:] == (sizes["BLEND_ARMS"], sizes["BLEND_FEATURES"])
    arrays = (drive.observations, drive.feedback, drive.ended, arms, actions, causes, psi, ucb, observed)
    library.replay(ctypes.c_int64(steps), *(one.ctypes.data_as(ctypes.c_void_p) for one in arrays))
    if exact:
        decided = drive.causes > 0
        np.testing.assert_array_equal(causes[decided], drive.causes[decided])
        np.testing.assert_array_equal(observed, drive.observed)
    return Difference(
        int((arms != drive.arms).sum()),
        _largest(drive.psi, psi),
        _largest(drive.ucb, ucb),
        float(np.abs(actions - drive.actions).max()),
    )


def _largest(expected, actual):
    known = np.isfinite(expected)
    assert np.isfinite(actual[known]).all()
    difference = np.abs(expected[known] - actual[known]) / np.maximum(np.abs(expected[known]), 1.0)
    return float(difference.max(initial=0.0))
