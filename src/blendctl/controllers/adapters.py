"""Controllers from anywhere: plain functions, models of other libraries, TorchScript and ONNX files."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.base import Controller
from blendctl.errors import FileFormatError, InputError, MissingExtraError

__all__ = [
    "as_controller",
    "act_rows",
    "FunctionController",
    "PredictController",
    "ScriptController",
    "OnnxController",
]


def as_controller(thing: Any) -> Controller:
    """Make a controller of anything that can drive: a controller, a model with `predict`, a plain function.

    >>> as_controller(lambda observation: [0.0, 1.0]).act([1.0, 2.0])
    array([0., 1.])
    """
    if callable(getattr(thing, "act", None)):
        return thing  # type: ignore[no-any-return]  # it has `act`, which is all that is asked
    if callable(getattr(thing, "predict", None)) and hasattr(thing, "policy"):
        return PredictController(thing)
    if callable(thing):
        return FunctionController(thing)
    raise InputError(
        "a controller must have a method act(observation, rng=None), be a stable-baselines3 model, or be a function "
        f"from an observation to an action; actually: {thing!r}"
    )


class FunctionController:
    """A plain function of the observation, or of (observation, rng) if it takes a second argument."""

    def __init__(self, function: Callable[..., ArrayLike], name: str | None = None) -> None:
        self.function = function
        own = getattr(function, "__name__", type(function).__name__)
        self.name = name or ("function" if own.startswith("<") else own)
        self._takes_rng = _takes_two(function)
        self._for_one: bool | None = None  # whether it takes one observation at a time; the first batch will tell

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Give the function's action."""
        if self._takes_rng:
            return np.asarray(self.function(observation, rng))
        return np.asarray(self.function(observation))

    def act_rows(self, observations: NDArray[Any], rng: np.random.Generator | None) -> NDArray[Any]:
        """Give an action for each of several observations: one by one, unless the function was written for batches."""
        if self._for_one is None:
            try:
                self._for_one = self.act(observations[0].copy(), copy.deepcopy(rng)).ndim == 1
            except Exception:
                self._for_one = False
        if self._for_one:
            return np.array([self.act(row.copy(), rng) for row in observations])
        return self.act(observations.copy(), rng)


def act_rows(
    controller: Controller, observations: NDArray[Any], rng: np.random.Generator | None
) -> NDArray[np.float64]:
    """Give actions (n, action_size) for observations (n, observation_size), whatever kind of controller it is.

    >>> act_rows(as_controller(lambda observation: [observation[0], 1.0]), np.zeros((3, 5)), None).shape
    (3, 2)
    """
    ask = controller.act_rows if isinstance(controller, FunctionController) else controller.act
    actions = np.asarray(ask(observations, rng), np.float64)
    if actions.ndim != 2 or len(actions) != len(observations):
        name = getattr(controller, "name", type(controller).__name__)
        raise InputError(
            f"{name} gave actions of shape {actions.shape} for {len(observations)} observations; expected "
            f"({len(observations)}, action_size). A controller must also take a batch of observations; a plain "
            "function of one observation is called for each"
        )
    return actions


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-ins do not tell
        return False
    if any(p.name == "rng" for p in parameters):
        return True
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in plain and p.default is p.empty for p in parameters) >= 2


class PredictController:
    """A stable-baselines3 or sb3-contrib model, as you loaded it: anything with `predict(observation, deterministic=)`.

    These models draw from a generator of their own: seed them with `model.set_random_seed`.
    """

    def __init__(self, model: Any, name: str | None = None) -> None:
        if getattr(getattr(model, "policy", None), "lstm_actor", None) is not None:
            raise InputError(
                f"{type(model).__name__} remembers what it saw (a recurrent policy), which a plain `predict` would "
                "forget at every step; wrap it in a class with act(observation, rng=None), and with reset() for the "
                "end of an episode"
            )
        self.model = model
        self.name = name or type(model).__name__

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Give the model's action: a draw, or with rng None its mean."""
        seen = observation if isinstance(observation, dict) else np.asarray(observation)
        action, _ = self.model.predict(seen, deterministic=rng is None)
        return np.asarray(action)


class ScriptController:
    """A TorchScript file whose forward takes observations (n, observation_size) and gives actions (n, action_size).

    Such a file is a program that torch runs, unlike everything else that blendctl loads: open only files you trust.
    """

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError("torch", extra="train") from None
        self.name = name or Path(path).stem
        self._torch = torch
        if not Path(path).is_file():
            raise FileFormatError(f"there is no file {path}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # that the format is old is the user's affair
                self._module = torch.jit.load(str(path), map_location="cpu").eval()  # type: ignore[no-untyped-call]  # torch's own
        except RuntimeError as error:
            raise FileFormatError(f"{path} is no TorchScript file: {str(error).splitlines()[0]}") from None

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Give the action for one observation or a batch."""
        rows = np.asarray(observation, np.float32)
        with self._torch.inference_mode():
            out = self._module(self._torch.from_numpy(np.array(np.atleast_2d(rows))))
        actions = out.numpy().astype(np.float64)
        return np.asarray(actions[0] if rows.ndim == 1 else actions)


class OnnxController:
    """An ONNX file whose first input takes observations (n, observation_size) and first output gives actions."""

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("onnxruntime", extra="onnx") from None
        self.name = name or Path(path).stem
        if not Path(path).is_file():
            raise FileFormatError(f"there is no file {path}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a control loop's networks are small: threads cost more than they bring
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors share no base
            raise FileFormatError(f"{path} is no ONNX model: {str(error).splitlines()[0]}") from None
        given = self._session.get_inputs()[0]
        self._input = given.name
        self._dtype = np.float64 if "double" in given.type else np.float32

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Give the action for one observation or a batch."""
        rows = np.asarray(observation, self._dtype)
        out = self._session.run(None, {self._input: np.atleast_2d(rows)})[0]
        actions = np.asarray(out, np.float64)
        return np.asarray(actions[0] if rows.ndim == 1 else actions)
