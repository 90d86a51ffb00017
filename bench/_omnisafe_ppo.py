"""Time OmniSafe's PPO, in an environment of its own (`training.py --omnisafe PYTHON` calls this).

The underscore keeps it out of `make bench`, which runs every other file here without arguments.
OmniSafe 0.5 needs Python 3.10 and numpy 1: `python3.10 -m venv omni && omni/bin/pip install omnisafe "numpy<2"`.
Network, rollout, minibatch and passes as in `training.py`; its worlds are Safety-Gymnasium's. Prints the time of
each rollout with its learning, as JSON.
"""

import json
import os
import sys
import tempfile


def main(world: str, rollouts: int) -> None:
    """Train for some rollouts of 16,000 steps and print the seconds that each took."""
    import omnisafe

    network = {"hidden_sizes": [256, 256], "activation": "tanh"}
    settings = {
        "train_cfgs": {
            "total_steps": 16_000 * rollouts,
            "vector_env_nums": 2,
            "torch_threads": 2,
            "device": "cpu",
        },
        "algo_cfgs": {
            "steps_per_epoch": 16_000,
            "batch_size": 2000,
            "update_iters": 6,
            "kl_early_stop": False,
        },
        "model_cfgs": {"actor": network, "critic": network},
        "logger_cfgs": {"use_wandb": False, "use_tensorboard": False, "save_model_freq": 10**6},
    }
    os.chdir(tempfile.mkdtemp())  # it writes its runs to the current directory
    agent = omnisafe.Agent("PPO", f"Safety{world}-v0", custom_cfgs=settings)
    agent.learn()
    with open(os.path.join(agent.agent.logger.log_dir, "progress.csv")) as file:
        head, *rows = [line.rstrip("\n").split(",") for line in file]
    print(json.dumps([float(row[head.index("Time/Epoch")]) for row in rows]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
