"""BlendEnv: the blend as an environment whose action is the choice of controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from blendctl.blender import arguments
from blendctl.controllers import Controller
from blendctl.controllers.adapters import as_controller
from blendctl.errors import InputError, StateError


class BlendEnv(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment in which an agent picks, at every stage, the controller that drives for `hold` steps.

    Any RL library can learn a switch in it. The reward and the costs in `info` are sums over the stage. The reward is
    reduced by `cost_weight` times the cost, for libraries that know one reward only.
    """

    def __init__(
        self,
        env: str | gymnasium.Env[Any, Any],
        controllers: Sequence[Controller | Callable[..., Any]],
        *,
        hold: int = 1,
        cost_weight: float = 0.0,
        stochastic: bool = True,
    ) -> None:
        if isinstance(env, str):
            from blendctl.blender.run_loop import make_env

            env = make_env(env)
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            controllers=controllers,
            hold=hold,
            cost_weight=cost_weight,
            stochastic=stochastic,
        )
        gymnasium.Wrapper.__init__(self, env)
        self.controllers = [as_controller(c) for c in arguments.as_controller_list(controllers)]
        self.hold = arguments.count("hold", hold)
        self.cost_weight = float(cost_weight)
        self.stochastic = stochastic
        self.action_space = Discrete(len(self.controllers))
        self._observation: Any = None
        self._rng: np.random.Generator | None = None  # noise of the controllers, made by the first reset

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let controller number `action` drive for a stage."""
        if not self.action_space.contains(action):
            raise InputError(
                f"the action is the number of a controller, 0 to {len(self.controllers) - 1}, actually: {action!r}"
            )
        if self._rng is None:
            raise StateError("the episode has not begun; call reset() before step()")
        controller = self.controllers[int(action)]
        total = 0.0
        costs: dict[str, float] = {}
        terminated = truncated = False
        info: dict[str, Any] = {}
        for _ in range(self.hold):
            applied = controller.act(self._observation, self._rng if self.stochastic else None)
            self._observation, reward, terminated, truncated, info = self.env.step(applied)
            if self.cost_weight and "cost" not in info:
                raise InputError('cost_weight needs info["cost"], which this environment lacks; add it with a wrapper')
            total += float(reward) - self.cost_weight * float(info.get("cost", 0.0))
            for name, value in info.items():
                if name == "cost" or name.startswith("cost_"):
                    costs[name] = costs.get(name, 0.0) + float(value)
            if terminated or truncated:
                break
        return self._observation, total, terminated, truncated, {**info, **costs}
