"""Time training end to end: blendctl's PPO on worlds in lock-step against stable-baselines3 on the same worlds.

Same network (256x256 tanh; blendctl also trains a cost critic), rollouts of 16,000 steps, minibatches and passes, in
one run. SB3 gets the single-form worlds in `SubprocVecEnv`, one process per core. Raw physics is
random actions in lock-step. `--omnisafe PYTHON` adds OmniSafe's PPO (one rollout) from another environment, see
`_omnisafe_ppo.py`. `--worlds PointGoal1 PointPush1 CarButton1`, `--steps 48000`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

import blendctl.training  # noqa: F401  # first: it configures OpenMP for both libraries

CORES = 2
ALGOS = {"PointGoal1": "ppo-lagrangian", "PointPush1": "trpo", "CarButton1": "trpo-lagrangian"}


def main() -> None:
    """Print a table, a row per world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(ALGOS))
    parser.add_argument("--steps", type=int, default=48_000)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--omnisafe", type=Path, metavar="PYTHON", help="Python interpreter with OmniSafe")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": platform.machine(), "python": platform.python_version()}
    print("| world | raw physics | blendctl ppo | the zoo's algorithm | sb3 ppo | ppo against sb3 | against raw |")
    print("|---|---|---|---|---|---|---|")
    for world in options.worlds:
        raw = raw_speed(world, options.steps)
        ours = blendctl_speed(world, "ppo", options.steps)
        algo = ALGOS.get(world, "trpo")
        special = blendctl_speed(world, algo, options.steps)
        peer = sb3_speed(world, 16_000)
        against = f"{ours / peer:.1f}x" if peer else "not installed"
        print(
            f"| {world} | {raw:,.0f} | {ours:,.0f} | {special:,.0f} ({algo}) | {peer or 0:,.0f} | {against} | "
            f"{ours / raw:.2f} |",
            flush=True,
        )
        results[world] = {"raw": raw, "blendctl_ppo": ours, f"blendctl_{algo}": special, "sb3_ppo": peer}
        if options.omnisafe:
            other = omnisafe_speed(options.omnisafe, world)
            print(f"  OmniSafe's PPO on {world}: {other:,.0f} steps/s, ours {ours / other:.1f}x", flush=True)
            results[world] |= {"omnisafe_ppo": other}
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def raw_speed(world: str, steps: int) -> float:
    """Return steps per second of random actions in 32 worlds."""
    from blendctl.training import make_worlds

    worlds = make_worlds(world, count=32, threads=CORES)
    worlds.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, size=(100, 32, 2))
    for t in range(20):
        worlds.step(actions[t])
    started = time.perf_counter()
    for t in range(steps // 32):
        worlds.step(actions[t % 100])
    speed = steps / (time.perf_counter() - started)
    worlds.close()
    return speed


def blendctl_speed(world: str, algo: str, steps: int) -> float:
    """Return steps per second of training, after the first update."""
    from blendctl.training import TrainConfig, Trainer

    config = TrainConfig.from_dict({"world": world, "algo": algo, "steps": steps + 16_000, "threads": CORES})
    records = list(Trainer(config).records())[1:]
    return len(records) * config.batch / sum(r.simulate_seconds + r.learn_seconds for r in records)


def sb3_speed(world: str, steps: int) -> float | None:
    """Return steps per second of stable-baselines3's PPO, after its start."""
    if importlib.util.find_spec("stable_baselines3") is None:
        return None
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import SubprocVecEnv

    def make() -> gymnasium.Env:  # type: ignore[type-arg]
        import blendctl.envs  # noqa: F401  # registers the worlds

        return gymnasium.make(f"blendctl/{world}-v0")

    class Clock(BaseCallback):
        """Record when each rollout begins."""

        times: list[float]

        def _on_training_start(self) -> None:
            self.times = []

        def _on_rollout_start(self) -> None:
            self.times.append(time.perf_counter())

        def _on_step(self) -> bool:
            return True

    torch.set_num_threads(CORES)
    worlds = SubprocVecEnv([make] * CORES)
    per_rollout = 16_000  # as ours
    model = PPO(
        "MlpPolicy",
        worlds,
        n_steps=per_rollout // CORES,
        batch_size=2000,
        n_epochs=6,
        policy_kwargs={"net_arch": {"pi": [256, 256], "vf": [256, 256]}, "activation_fn": torch.nn.Tanh},
        device="cpu",
    )
    clock = Clock()
    started = time.perf_counter()
    model.learn(max(steps, per_rollout), callback=clock)
    ended = time.perf_counter()
    worlds.close()
    whole = ended - (clock.times[0] if clock.times else started)
    return model.num_timesteps / whole


def omnisafe_speed(python: Path, world: str) -> float:
    """Return steps per second of OmniSafe's PPO over one rollout with its learning."""
    script = Path(__file__).with_name("_omnisafe_ppo.py")
    process = subprocess.run([python, script, world, "1"], check=True, capture_output=True, text=True)
    return 16_000 / float(json.loads(process.stdout.splitlines()[-1])[-1])


if __name__ == "__main__":
    main()
