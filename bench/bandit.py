"""Measure one decide + update: blendctl, its peers, and the same arithmetic in one compiled loop (the limit).

    python bench/bandit.py [--rounds 7] [--json bench/results/bandit.json]

All contenders run in one process and in turns, so that noise of the machine affects all of them; the
figures to trust are the ratios. blendctl serves two objectives, the peers one. Every step sees fresh
features; blendctl's are checked as always.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numba
import numpy as np

from blendctl import BanditBatch, BlendingBandit
from blendctl.bandit import kernels, memory_layout

warnings.simplefilter("ignore")  # the peers' own

OBJECTIVES = 2
Step = Callable[[int], None]


def draw(rng: np.random.Generator, count: int, arms: int, d: int) -> np.ndarray:
    psi = rng.normal(size=(count, arms, d))
    return psi / (np.linalg.norm(psi, axis=-1, keepdims=True) * 1.001)


def blendctl_step(psi: np.ndarray, y: np.ndarray) -> Step:
    bandit = BlendingBandit(psi.shape[2], OBJECTIVES, seed=0)
    features, feedback = list(psi), list(y)

    def step(i: int) -> None:
        decision = bandit.decide(features[i])
        bandit.update(features[i][decision.arm], feedback[i])

    return step


@numba.njit(nogil=True, error_model="numpy")
def compiled_loop(state, rng, config, psi, y, out):  # type: ignore[no-untyped-def]  # numba infers
    for i in range(psi.shape[0]):
        kernels.decide_one(state, rng, config, psi[i], out)
        kernels.update_one(state, config, psi[i, int(out[memory_layout.ARM])], y[i])


def limit_run(psi: np.ndarray, y: np.ndarray) -> Callable[[], float]:
    """Return a function that runs the compiled loop once over all draws and returns microseconds per step."""
    bandit = BlendingBandit(psi.shape[2], OBJECTIVES, seed=0)
    arrays = bandit.arrays
    out = np.empty(memory_layout.decision_size(psi.shape[1], OBJECTIVES))

    def run() -> float:
        start = time.perf_counter()
        compiled_loop(*arrays, psi, y, out)
        return (time.perf_counter() - start) / len(psi) * 1e6

    return run


def mabwiser_step(psi: np.ndarray, y: np.ndarray) -> Step:
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(psi.shape[1]))
    mab = MAB(arms, LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0), seed=0)
    mab.fit(arms, [0.0] * len(arms), psi[: len(arms), 0])

    def step(i: int) -> None:
        context = psi[i, :1]
        mab.partial_fit([mab.predict(context)], [y[i, 0]], context)

    return step


def contextualbandits_step(psi: np.ndarray, y: np.ndarray) -> Step:
    from contextualbandits.online import LinUCB

    policy = LinUCB(nchoices=psi.shape[1], alpha=1.0, random_state=1)
    policy.partial_fit(psi[:1, 0], np.array([0]), y[:1, 0])

    def step(i: int) -> None:
        context = psi[i, :1]
        policy.partial_fit(context, policy.predict(context), y[i, :1])

    return step


def river_step(psi: np.ndarray, y: np.ndarray) -> Step:
    from river.bandit import LinUCBDisjoint

    policy = LinUCBDisjoint(alpha=1.0, seed=0)
    arms = list(range(psi.shape[1]))
    contexts = [dict(enumerate(row[0])) for row in psi]

    def step(i: int) -> None:
        arm = policy.pull(arms, context=contexts[i])
        policy.update(arm, contexts[i], y[i, 0])

    return step


PEERS = {"river": river_step, "contextualbandits": contextualbandits_step, "mabwiser": mabwiser_step}


def timed(step: Step, count: int) -> np.ndarray:
    times = np.empty(count)
    for i in range(count):
        start = time.perf_counter_ns()
        step(i)
        times[i] = time.perf_counter_ns() - start
    return times / 1e3


def compare(d: int, arms: int, rounds: int) -> dict[str, dict[str, float]]:
    """Run all contenders in turns; microseconds per decide + update."""
    rng = np.random.default_rng(0)
    own_count = {2: 4000, 16: 4000, 64: 1000, 256: 200}[d]
    psi, y = draw(rng, own_count, arms, d), rng.normal(size=(own_count, OBJECTIVES))
    own, limit = blendctl_step(psi, y), limit_run(psi, y)
    peers = {name: make(psi, y) for name, make in PEERS.items() if installed(name)}
    peer_count = max(10, own_count // 40)
    samples: dict[str, list[np.ndarray]] = {name: [] for name in ("blendctl", "compiled loop", *peers)}
    timed(own, 20), limit()
    for _ in range(rounds):
        samples["compiled loop"].append(np.array([limit()]))
        samples["blendctl"].append(timed(own, own_count))
        for name, step in peers.items():
            samples[name].append(timed(step, peer_count))
    figures = {}
    for name, parts in samples.items():
        times = np.concatenate(parts)
        figures[name] = {"median_us": float(np.median(times)), "p99_us": float(np.quantile(times, 0.99))}
    base = figures["blendctl"]["median_us"]
    for name in figures:
        figures[name]["ratio_to_blendctl"] = figures[name]["median_us"] / base
    return figures


def batch_speed(rounds: int, learners: int = 1000, d: int = 2, arms: int = 2) -> float:
    """Measure learner-steps per second of the batch form (decide + update), the best round."""
    rng = np.random.default_rng(0)
    batch = BanditBatch(learners, n_features=d, seed=0)
    psi, y = draw(rng, learners, arms, d), rng.normal(size=(learners, OBJECTIVES))
    rows = np.arange(learners)
    best = 0.0
    for _ in range(rounds):
        spent = 0.0
        for _ in range(100):
            start = time.perf_counter()
            arm = batch.decide(psi).arm
            decided = time.perf_counter()
            chosen = psi[rows, arm]  # the caller's work
            learning = time.perf_counter()
            batch.update(chosen, y)
            spent += time.perf_counter() - learning + decided - start
        best = max(best, 100 * learners / spent)
    return best


def import_seconds(rounds: int) -> float:
    """Measure `import blendctl` in a fresh interpreter, beyond the interpreter itself (median)."""

    def once(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    once("import blendctl")
    return float(np.median([once("import blendctl") - once("pass") for _ in range(rounds)]))


def installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        print(f'{name} is not installed and left out; try: pip install "blendctl[bench]"')
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of every contender (default 7)")
    parser.add_argument("--json", type=Path, default=Path("bench/results/bandit.json"), help="file of the figures")
    options = parser.parse_args()
    results: dict[str, object] = {}
    names = ["blendctl", "compiled loop", *PEERS]
    print("microseconds per decide + update, median (p99); times slower than blendctl in brackets")
    print(f"{'':>14}" + "".join(f"{name:>26}" for name in names))
    for arms in (2, 16):
        for d in (2, 16, 64, 256):
            figures = compare(d, arms, options.rounds)
            results[f"d={d}, arms={arms}"] = figures
            cells = []
            for name in names:
                f = figures.get(name)
                cells.append(
                    f"{'-':>26}"
                    if f is None
                    else f"{f['median_us']:>9.1f} ({f['p99_us']:.0f}) [{f['ratio_to_blendctl']:.2f}]".rjust(26)
                )
            print(f"d={d:<4} arms={arms:<3}" + "".join(cells), flush=True)
    speed, seconds = batch_speed(options.rounds), import_seconds(5)
    print(f"batch form, d = 2, 2 arms, 1,000 learners: {speed / 1e6:.2f} million learner-steps per second")
    print(f"import blendctl: {seconds:.3f} s beyond the interpreter")
    data = {
        "command": "python " + " ".join(sys.argv),
        "machine": {"python": platform.python_version(), "cpu": platform.processor() or platform.machine()},
        "versions": {n: version(n) for n in ("numpy", "numba", *PEERS) if installed(n)},
        "decide_update": results,
        "batch_learner_steps_per_second": speed,
        "import_seconds": seconds,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(data, indent=2) + "\n")
    print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
