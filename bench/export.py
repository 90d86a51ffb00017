"""Time one blended control step in C: against the arithmetic limit, the Python blender and onnxruntime.

    python bench/export.py [--flags "-O3"] [--steps 2000] [--json bench/results/export.json]

The blend is the PointGoal1 pair with its context networks (two 256x256 controllers), act + observe with learning. All
run on the same recorded observations. The arithmetic limit is the time of the networks' multiply-adds, as stated in the
contract, at the rate that the same compiler and flags reach in the same sum on aligned numbers in the first-level
cache. The file computes fewer of them: inputs of four zeros are skipped, and sums that two contexts share are computed
once. Leave the machine idle: the percentiles are of wall time, and a busy core shows in them. What interrupts a step
on this machine is measured with plain sums of the same size, and left out where each step counts in its fastest round.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from blendctl import Blender
from blendctl.controllers import load
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import SingleWorld

DRIVER = r"""
#define _POSIX_C_SOURCE 199309L
#include "blend.h"
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Time every step, in seconds. */
void time_steps(const double *observations, int steps, double *seconds)
{
    static blend_memory memory;
    blend_state *state = (blend_state *)&memory;
    const double feedback[BLEND_OBJECTIVES] = {0.01, 0.0};
    double action[BLEND_ACTION_SIZE];
    int i;
    blend_init(state);
    for (i = 0; i < steps; i++) {
        const double begun = now();
        blend_act(state, observations + (size_t)i * BLEND_OBSERVATION_SIZE, action);
        blend_observe(state, feedback);
        seconds[i] = now() - begun;
    }
}

#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void sum_once(const float *restrict w, const float *restrict x, float *restrict y)
{
    int i, j;
    for (i = 0; i < 16; i += 4) {
        const float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        const float *w0 = w + i * 256, *w1 = w0 + 256, *w2 = w1 + 256, *w3 = w2 + 256;
        for (j = 0; j < 256; j++)
            y[j] += (a * w0[j] + b * w1[j]) + (c * w2[j] + d * w3[j]);
    }
}

/* Time plain sums of as many multiply-adds as a step has: what interrupts them is the machine. */
void time_sums(int steps, int repeats, double *seconds)
{
    static float w[16 * 256] __attribute__((aligned(64))), x[16], y[256] __attribute__((aligned(64)));
    int i, repeat;
    for (i = 0; i < steps; i++) {
        const double begun = now();
        for (repeat = 0; repeat < repeats; repeat++) {
            sum_once(w, x, y);
            x[repeat % 16] = y[repeat % 256] * 1e-9f;
        }
        seconds[i] = now() - begun;
    }
}

/* The time of one multiply-add in the layers' sum, on 16 kB of weights. */
double multiply_add(void)
{
    static float w[16 * 256] __attribute__((aligned(64))), x[16], y[256] __attribute__((aligned(64)));
    double best = 1.0;
    int round, repeat, i;
    for (i = 0; i < 16 * 256; i++)
        w[i] = 1e-3f * (float)(i % 97);
    for (i = 0; i < 16; i++)
        x[i] = 0.01f * (float)i;
    for (round = 0; round < 200; round++) {
        const double begun = now();
        double taken;
        for (repeat = 0; repeat < 100; repeat++) {
            sum_once(w, x, y);
            x[repeat % 16] = y[repeat % 256] * 1e-9f;
        }
        taken = (now() - begun) / (100.0 * 16.0 * 256.0);
        best = taken < best ? taken : best;
    }
    return best;
}
"""


def observed(steps: int) -> np.ndarray:
    """Return the observations of a drive by the performant controller, (steps, observation_size)."""
    world, driver = SingleWorld("PointGoal1", max_episode_steps=10**9), load(PAIRS["PointGoal1"][0])
    rows = [world.reset(seed=0)[0]]
    while len(rows) < steps:
        rows.append(world.step(driver.act(rows[-1]))[0])
    world.close()
    return np.array(rows)


def blender() -> Blender:
    """Return the blend that is measured."""
    pair = [load(name) for name in PAIRS["PointGoal1"]]
    return Blender(pair, ["fast", "safe"], features="predictions", stochastic=False, fallback="safe", seed=0)


def build(folder: Path, flags: list[str]) -> ctypes.CDLL:
    """Compile the exported blend with its driver."""
    (folder / "driver.c").write_text(DRIVER)
    sources = [folder / "blend.c", folder / "driver.c"]
    subprocess.run(["gcc", "-std=c99", *flags, "-shared", "-fPIC", *sources, "-o", folder / "b.so", "-lm"], check=True)
    library = ctypes.CDLL(str(folder / "b.so"))
    library.multiply_add.restype = ctypes.c_double
    return library


def time_c(library: ctypes.CDLL, observations: np.ndarray, rounds: int) -> np.ndarray:
    """Return seconds of every step, (rounds, steps)."""
    pointer = ctypes.POINTER(ctypes.c_double)
    seconds = np.empty((rounds, len(observations)))
    for row in seconds:
        library.time_steps(observations.ctypes.data_as(pointer), len(observations), row.ctypes.data_as(pointer))
    return seconds


def time_sums(library: ctypes.CDLL, steps: int, multiply_adds: int) -> np.ndarray:
    """Return seconds of plain sums with as many multiply-adds as a step, (steps,)."""
    seconds = np.empty(steps)
    repeats = round(multiply_adds / 4096)
    library.time_sums(steps, repeats, seconds.ctypes.data_as(ctypes.POINTER(ctypes.c_double)))
    return seconds


def time_calls(call: Any, observations: np.ndarray, rounds: int) -> np.ndarray:
    """Return seconds of a call per observation, (rounds, steps)."""
    seconds = np.empty((rounds, len(observations)))
    for row in seconds:
        for at, observation in enumerate(observations):
            begun = time.perf_counter()
            call(observation)
            row[at] = time.perf_counter() - begun
    return seconds


def main() -> None:
    """Print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flags", default="-O3", help="compiler flags")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "export.json")
    options = parser.parse_args()
    observations = observed(options.steps)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        blender().export(folder / "c", world="PointGoal1")
        blender().export(folder / "onnx", format="onnx", world="PointGoal1")
        limits = json.loads((folder / "c" / "contract.json").read_text())["limits"]
        size = (folder / "c" / "blend.c").stat().st_size
        library = build(folder / "c", options.flags.split())
        steps = {"C": time_c(library, observations, options.rounds)}
        sums = time_sums(library, steps["C"].size, limits["multiply_adds"])
        limit = library.multiply_add() * limits["multiply_adds"]
        driver = blender()

        def python_step(observation: np.ndarray) -> None:
            driver.act(observation)
            driver.observe(0.01, 0.0)

        steps["Python"] = time_calls(python_step, observations, options.rounds)
        steps["onnxruntime (without learning)"] = time_calls(_session(folder / "onnx"), observations, options.rounds)
    fastest = {name: seconds.min(axis=0).mean() for name, seconds in steps.items()}
    all_c = steps["C"][:, 50:].ravel()
    p50, p999 = np.percentile(all_c, [50, 99.9])
    plain = np.percentile(sums, [50, 99.9])  # the same arithmetic without a blend: the machine's own interruptions
    own = np.percentile(steps["C"][:, 50:].min(axis=0), [50, 99.9])  # the same step is rarely interrupted in each round
    results = {
        "multiply_adds": limits["multiply_adds"],
        "arithmetic_limit_us": limit * 1e6,
        "gigaflops": 2.0 * limits["multiply_adds"] / limit * 1e-9,
        "step_us": {name: value * 1e6 for name, value in fastest.items()},
        "c_to_limit": fastest["C"] / limit,
        "python_to_c": fastest["Python"] / fastest["C"],
        "onnxruntime_to_c": fastest["onnxruntime (without learning)"] / fastest["C"],
        "c_p50_us": p50 * 1e6,
        "c_p999_us": p999 * 1e6,
        "c_p999_to_p50": p999 / p50,
        "c_p999_to_p50_fastest_round": own[1] / own[0],
        "sums_p999_to_p50": plain[1] / plain[0],
        "source_bytes": size,
        "state_bytes": limits["state_bytes"],
        "load": os.getloadavg()[0],
    }
    goals = [
        ("a step in C, of the arithmetic limit", results["c_to_limit"], "<=", 1.5),
        ("Python's step, of C's", results["python_to_c"], ">=", 5.0),
        ("onnxruntime's step, of C's", results["onnxruntime_to_c"], ">=", 1.0),
        ("p99.9 of p50 in C", results["c_p999_to_p50"], "<=", 2.0),
        ("the same, each step in its fastest round", results["c_p999_to_p50_fastest_round"], "<=", 2.0),
        ("source, MB", size * 1e-6, "<=", 4.0),
        ("state, kB", limits["state_bytes"] * 1e-3, "<=", 64.0),
    ]
    met = {name: bool(value <= goal if sign == "<=" else value >= goal) for name, value, sign, goal in goals}
    results["goals"] = met
    rate = f"{limits['multiply_adds']} multiply-adds, {results['gigaflops']:.1f} GFLOP/s"
    print(f"arithmetic limit {limit * 1e6:.1f} us: {rate}")
    for name, value in results["step_us"].items():
        ratios = f"{value * 1e-6 / limit:6.2f} of the limit   {value / results['step_us']['C']:6.2f} of C"
        print(f"{name:32} {value:8.1f} us   {ratios}")
    print(f"C: p50 {p50 * 1e6:.1f} us, p99.9 {p999 * 1e6:.1f} us; load of the machine {results['load']:.1f}")
    print(f"plain sums of the same size: p99.9 is {plain[1] / plain[0]:.2f} times p50\n")
    print(f"{'goal':40}{'measured':>10}{'limit':>10}")
    for name, value, sign, goal in goals:
        print(f"{name:40}{value:10.2f}{f'{sign} {goal:g}':>10}   {'met' if met[name] else 'MISSED'}")
    command = f'python bench/export.py --flags "{options.flags}"'
    about = {"command": command, "python": platform.python_version(), "numpy": np.__version__}
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps(about | results, indent=2) + "\n")


def _session(folder: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # inputs with defaults are intended
    session = onnxruntime.InferenceSession(str(folder / "blend.onnx"), options, providers=["CPUExecutionProvider"])
    return lambda observation: session.run(["arm", "action"], {"observation": observation})


if __name__ == "__main__":
    main()
