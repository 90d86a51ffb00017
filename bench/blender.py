"""Measure the blender: the time of one act + observe beyond the networks, and the paper's whole iteration.

    python bench/blender.py [--steps 1000] [--rounds 5] [--json bench/results/blender.json]

With the zoo's controllers where they ship, else with networks of the same size and untrained weights. Every round
drives the same trajectory, and of every step the fastest round counts, so that a busy moment does not decide. Raw
physics is MuJoCo's own ten sub-steps from the same states, in the same run.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode

from blendctl import Blender, BlenderBatch
from blendctl.blender import Recorder
from blendctl.blender.compiled_loop import CompiledLoop
from blendctl.blender.counterfactual import CounterfactualEvaluator
from blendctl.controllers import ContextNetwork, NetworkController, load, zoo_names
from blendctl.controllers.dense import Dense
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import SingleWorld, VectorWorld
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.kernels import load_world
from blendctl.envs.physics import make_slot

GOAL_MS = {"PointGoal1": 0.5, "PointPush1": 0.9, "CarButton1": 1.8}
PAPER_MS = {"PointGoal1": 2.0, "PointPush1": 3.0, "CarButton1": 5.0}
GOAL_RATIO = {"CarButton1": 2.5}
WARM_UP = 50  # steps that do not count


def dense(rng: np.random.Generator, *sizes: int) -> Dense:
    weights = tuple((rng.normal(size=s) / np.sqrt(s[0])).astype(np.float32) for s in pairwise(sizes))
    return Dense(weights, tuple(np.zeros(m, np.float32) for m in sizes[1:]))


def untrained(world: str, name: str, seed: int) -> NetworkController:
    """Make a controller of the zoo's size with random weights."""
    from blendctl.training.encodings import world_encodings

    rng, views = np.random.default_rng(seed), world_encodings(world)
    context = ContextNetwork(
        dense(rng, views.context.size + 2 * len(views.action_gains), 256, 256, 2), views.context, views.action_gains,
        horizons=(1,), discount=0.9, scale=np.full(2, 0.1, np.float32), shift=np.zeros(2, np.float32),
    )  # fmt: skip
    size = views.policy.size
    return NetworkController(
        name, views.policy, dense(rng, size, 256, 256, 2), np.full(2, -0.5, np.float32),
        critic=dense(rng, size, 256, 256, 1), cost_critic=dense(rng, size, 256, 256, 1), context=context,
    )  # fmt: skip


def pair(world: str) -> tuple[list[NetworkController], str]:
    names = PAIRS[world]
    if all(name in zoo_names() for name in names):
        controllers = [load(name) for name in names]
        if all(controller.context is not None for controller in controllers):
            return controllers, "zoo"
    return [untrained(world, name, seed) for seed, name in enumerate(names)], "untrained"


def fastest(rounds: int, measure: Callable[[], dict[str, list[float]]]) -> dict[str, np.ndarray]:
    """Run several rounds; return seconds per step, the fastest round of each step."""
    results = [measure() for _ in range(rounds)]
    return {name: np.min([one[name] for one in results], axis=0)[WARM_UP:] for name in results[0]}


def overhead(steps: int, rounds: int, record: Path | None) -> dict[str, float]:
    """Return microseconds of act + observe beyond direct calls of the same networks, at the same observations."""
    controllers, _ = pair("PointGoal1")

    def measure() -> dict[str, list[float]]:
        env = SingleWorld("PointGoal1", max_episode_steps=10**9)
        observation, _ = env.reset(seed=0)
        recorder = None if record is None else Recorder(record, overwrite=True)
        blender = Blender(
            controllers, ["fast", "safe"], features="predictions", fallback="safe", seed=0, record=recorder
        )
        rngs = [np.random.default_rng(i) for i in range(2)]
        whole, networks = [], []
        clock = time.perf_counter
        for _ in range(steps + WARM_UP):
            t0 = clock()
            for controller, rng in zip(controllers, rngs, strict=True):
                controller.predict(observation, controller.act(observation, rng))
            t1 = clock()
            action = blender.act(observation)
            t2 = clock()
            observation, reward, _, _, info = env.step(action)
            t3 = clock()
            blender.observe(reward, info["cost"])
            whole.append(t2 - t1 + clock() - t3)
            networks.append(t1 - t0)
        blender.close()
        env.close()
        return {"whole": whole, "networks": networks}

    seconds = fastest(rounds, measure)
    extra = (seconds["whole"] - seconds["networks"]) * 1e6
    return {
        "networks_us": float(np.median(seconds["networks"]) * 1e6),
        "act_observe_us": float(np.median(seconds["whole"]) * 1e6),
        "overhead_median_us": float(np.median(extra)),
        "overhead_p99_us": float(np.percentile(extra, 99)),
    }


def bare(steps: int, rounds: int) -> dict[str, float]:
    """Return microseconds of act + observe with controllers that take no time: the blender alone."""
    action, prediction = np.zeros(2), (0.1, -0.1)

    class Free:
        action_size = 2

        def act(self, observation: object, rng: object = None) -> np.ndarray:
            return action

        def predict(self, observation: object, action: object) -> tuple[float, float]:
            return prediction

    def measure() -> dict[str, list[float]]:
        blender = Blender([Free(), Free()], ["fast", "safe"], seed=0)
        observation = np.zeros(60)
        seconds = []
        for _ in range(steps + WARM_UP):
            begun = time.perf_counter()
            blender.act(observation)
            blender.observe(0.1, 0.0)
            seconds.append(time.perf_counter() - begun)
        return {"all": seconds}

    values = fastest(rounds, measure)["all"] * 1e6
    return {"median": float(np.median(values)), "p99": float(np.percentile(values, 99))}


def iteration(world: str, steps: int, rounds: int) -> dict[str, Any]:
    """Time the paper's iteration in one world: both controllers, contexts, bandit, physics, the counterfactual step.

    The controller that drives is judged by its real feedback, so a pair needs one counterfactual step: the iteration
    has two raw steps' worth of physics in it. Counterfactual steps are taken some tens at once on the second core.
    """
    controllers, weights = pair(world)

    def measure() -> dict[str, list[float]]:
        env = SingleWorld(world, max_episode_steps=10**9)
        observation, _ = env.reset(seed=0)
        bench, (model, data) = make_slot(env.batch.model)
        blender = Blender(controllers, ["fast", "safe"], features="predictions", fallback="safe", seed=0)
        evaluator = CounterfactualEvaluator(env, blender)
        whole, physics = [], []
        clock = time.perf_counter
        for _ in range(steps + WARM_UP):
            load_world(env.batch.compiled_task, bench, env.batch.worlds, 0)  # raw physics from the same state
            t0 = clock()
            action = blender.act(observation)
            evaluator.look(blender.choice)
            observation, reward, _, _, info = env.step(action)
            evaluator.see(blender.objectives({"reward": reward, "cost": info["cost"]}), full=True, ended=False)
            blender.observe(reward, info["cost"])
            evaluator.take()
            t1 = clock()
            data.ctrl[:] = action
            mujoco.mj_step(model, data, nstep=SUBSTEPS)
            t2 = clock()
            whole.append(t1 - t0)
            physics.append(t2 - t1)
        t0 = clock()
        evaluator.close()  # the time includes the last counterfactual steps
        whole[-1] += clock() - t0
        env.close()
        return {"whole": whole, "physics": physics}

    seconds = fastest(rounds, measure)
    whole, physics = (float(seconds[name].mean() * 1e3) for name in ("whole", "physics"))
    return {
        "weights": weights,
        "iteration_ms": whole,
        "physics_ms": physics,
        "ratio": whole / physics,  # to one raw step; the counterfactual one runs beside it, on the second core
    }


def compiled(world: str, rounds: int) -> float:
    """Return milliseconds of the same iteration in the compiled loop of the paper's experiment."""
    controllers, _ = pair(world)
    best = float("inf")
    for _ in range(rounds + 1):  # the first one compiles or loads
        blender = Blender(controllers, ["fast", "safe"], fallback="safe", features="predictions", seed=0)
        with closing(SingleWorld(world)) as env, CompiledLoop(env, blender) as loop:
            begun = time.perf_counter()
            stages = loop.episode(0)
            best = min(best, (time.perf_counter() - begun) / len(stages.arm) * 1e3)
    return best


def lock_step(world: str, worlds: int, steps: int, rounds: int) -> dict[str, float]:
    """Return the speed of blending in many worlds relative to stepping the same worlds alone."""
    controllers, _ = pair(world)

    def measure() -> dict[str, list[float]]:
        env = VectorWorld(world, worlds, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=10**9)
        observations, _ = env.reset(seed=0)
        blender = BlenderBatch(controllers, worlds, features="predictions", learner="pooled", seed=0)
        blended, stepping = [], []
        for _ in range(steps + WARM_UP):
            t0 = time.perf_counter()
            actions = blender.act(observations)
            t1 = time.perf_counter()
            observations, rewards, _, _, infos = env.step(actions)
            t2 = time.perf_counter()
            blender.observe(rewards, infos)
            blended.append(time.perf_counter() - t0)
            stepping.append(t2 - t1)
        env.close()
        return {"blended": blended, "stepping": stepping}

    seconds = fastest(rounds, measure)
    blended, stepping = float(seconds["blended"].mean()), float(seconds["stepping"].mean())
    return {
        "worlds": worlds,
        "blended_steps_per_s": worlds / blended,
        "raw_steps_per_s": worlds / stepping,
        "share_of_raw": stepping / blended,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--record", type=Path, default=Path("out/bench-record"))
    args = parser.parse_args()
    results: dict[str, Any] = {"machine": platform.machine(), "python": platform.python_version()}
    result = results["bare"] = bare(args.steps, args.rounds)
    print(f"the blender alone: {result['median']:.1f} us (p99 {result['p99']:.1f})")
    for name, record in (("overhead", None), ("overhead_recorded", args.record)):
        result = results[name] = overhead(args.steps, args.rounds, record)
        print(
            f"act + observe{', recorded' if record else ''}: {result['act_observe_us']:.1f} us, networks "
            f"{result['networks_us']:.1f}; beyond them {result['overhead_median_us']:.1f} us "
            f"(p99 {result['overhead_p99_us']:.1f}); goal 30 (p99 100)"
        )
    for world in PAIRS:
        result = results[world] = iteration(world, args.steps // 2, args.rounds)
        goal = f", goal {GOAL_RATIO[world]}" if world in GOAL_RATIO else ""
        print(
            f"{world} ({result['weights']}): an iteration {result['iteration_ms']:.3f} ms, goal {GOAL_MS[world]}, "
            f"the paper {PAPER_MS[world]}; a raw step {result['physics_ms']:.3f} ms, "
            f"ratio {result['ratio']:.2f}{goal}"
        )
        loop = result["compiled_loop_ms"] = compiled(world, args.rounds)
        print(f"  in the experiment's compiled loop {loop:.3f} ms, ratio {loop / result['physics_ms']:.2f}")
    result = results["lock_step"] = lock_step("PointGoal1", 30, max(args.steps // 10, 20), args.rounds)
    print(
        f"30 worlds: {result['blended_steps_per_s']:.0f} blended steps/s, {result['raw_steps_per_s']:.0f} alone, "
        f"share {result['share_of_raw']:.2f}; goal 0.6"
    )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
