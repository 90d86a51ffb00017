"""Blend two stable-baselines3 policies on a Gymnasium task: carry a pole to a mark and keep it upright.

    pip install "blendctl[sb3]"
    python examples/two_sb3_policies.py

CartPole with a mark at x = 1. The reward is higher near the mark; every step in which the pole leans more than 0.04 rad
has a cost. One PPO policy is trained for the reward alone, one with a price on the cost. The blend switches between
them and learns their feedback online.
"""

import argparse

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from blendctl import Blender, run
from blendctl.bandit.rules import Fixed
from blendctl.blender.episode_stats import EpisodeStats

STEPS = 200  # per episode


class Carry(gymnasium.Wrapper):
    """CartPole with a reward for being near x = 1 and a cost, in info, for leaning."""

    def __init__(self, price: float = 0.0) -> None:
        super().__init__(gymnasium.make("CartPole-v1", max_episode_steps=STEPS))
        self.price = price  # of a unit of cost, in the reward that a policy is trained with

    def step(self, action):
        observation, _, fell, over, info = self.env.step(action)
        x, lean = float(observation[0]), float(observation[2])
        info["cost"] = float(abs(lean) > 0.04)
        reward = 1.0 - 0.5 * min(1.0, abs(x - 1.0))
        return observation, reward - self.price * info["cost"], fell, over, info


def trained(price: float, steps: int) -> PPO:
    """Train a policy with a price on the cost."""
    worlds = make_vec_env(lambda: Carry(price), n_envs=8, seed=1)
    model = PPO(
        "MlpPolicy", worlds, n_steps=128, batch_size=256, n_epochs=8, gamma=0.99, gae_lambda=0.95,
        learning_rate=2e-3, seed=1, device="cpu",
    )  # fmt: skip
    return model.learn(steps)


def main(train_steps: int = 30_000, episodes: int = 10) -> dict[str, dict]:
    """Train, drive with each policy alone and with the blend on the same episodes; print and return the results."""
    torch.set_num_threads(1)  # the networks are small
    policies = [trained(price, train_steps) for price in (0.0, 0.5)]
    results = {}
    print(f"{'':<8}{'return':>8}{'cost':>8}   driven by fast, safe")
    for title, options in {
        "fast": {"rule": Fixed(arm=0)},
        "safe": {"rule": Fixed(arm=1)},
        "blended": {"hold": 5},  # five control steps per decision
    }.items():
        blender = Blender(policies, ["fast", "safe"], fallback="safe", stochastic=False, seed=0, **options)
        stats = EpisodeStats(blender.names)
        for record in run(Carry(), blender, episodes=episodes, seed=100):
            stats.add(record)
        results[title] = summary = stats.summary()
        shares = "  ".join(f"{100 * share:3.0f}%" for share in summary["arm_share"].values())
        print(f"{title:<8}{summary['return_mean']:>8.1f}{summary['cost_mean']:>8.1f}   {shares}")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train-steps", type=int, default=30_000, help="per policy")
    parser.add_argument("--episodes", type=int, default=10)
    options = parser.parse_args()
    main(options.train_steps, options.episodes)
