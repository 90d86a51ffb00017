"""Adapters for plain functions, models of other libraries, TorchScript and ONNX files."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.base import Controller
from blendctl.errors import FileFormatError, InputError, MissingExtraError

ONNX_MEMORY = 1 << 30  # bytes that all ONNX sessions of a process may use together


def as_controller(candidate: Any) -> Controller:
    """Return a controller for a controller, a model with `predict`, or a plain function.

    >>> as_controller(lambda observation: [0.0, 1.0]).act([1.0, 2.0])
    array([0., 1.])
    """
    if callable(getattr(candidate, "act", None)):
        return candidate  # type: ignore[no-any-return]  # it has `act`, the one requirement
    if callable(getattr(candidate, "predict", None)) and hasattr(candidate, "policy"):
        return PredictController(candidate)
    if callable(candidate):
        return FunctionController(candidate)
    raise InputError(
        "a controller must have a method act(observation, rng=None), be a stable-baselines3 model, or be a function "
        f"from an observation to an action; actually: {candidate!r}"
    )


class FunctionController:
    """A plain function of the observation, or of (observation, rng) if it takes a second argument."""

    def __init__(self, function: Callable[..., ArrayLike], name: str | None = None) -> None:
        self.function = function
        function_name = getattr(function, "__name__", type(function).__name__)
        self.name = name or ("function" if function_name.startswith("<") else function_name)
        self._takes_rng = _accepts_rng(function)
        self._one_at_a_time: bool | None = None  # unknown until the first batch

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Return the function's action."""
        if self._takes_rng:
            return np.asarray(self.function(observation, rng))
        return np.asarray(self.function(observation))

    def act_rows(self, observations: NDArray[Any], rng: np.random.Generator | None) -> NDArray[Any]:
        """Return an action per observation; call the function once per row unless it accepts a batch."""
        if self._one_at_a_time is None:
            try:
                self._one_at_a_time = self.act(observations[0].copy(), copy.deepcopy(rng)).ndim <= 1
            except Exception:
                self._one_at_a_time = False
        if self._one_at_a_time:
            return np.array([self.act(row.copy(), rng) for row in observations])
        return self.act(observations.copy(), rng)


def act_rows(
    controller: Controller, observations: NDArray[Any], rng: np.random.Generator | None
) -> NDArray[np.float64]:
    """Return actions (n, action_size) for observations (n, observation_size) from any kind of controller.

    >>> act_rows(as_controller(lambda observation: [observation[0], 1.0]), np.zeros((3, 5)), None).shape
    (3, 2)
    """
    act = controller.act_rows if isinstance(controller, FunctionController) else controller.act
    actions = np.asarray(act(observations, rng), np.float64)
    if actions.shape == (len(observations),):  # discrete actions, a number each
        actions = actions[:, None]
    if actions.ndim != 2 or len(actions) != len(observations):
        name = getattr(controller, "name", type(controller).__name__)
        raise InputError(
            f"{name} returned actions of shape {actions.shape} for {len(observations)} observations; expected "
            f"({len(observations)}, action_size). A controller must also accept a batch of observations; a plain "
            "function is called once per observation instead"
        )
    return actions


def _accepts_rng(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-ins have no signature
        return False
    if any(p.name == "rng" for p in parameters):
        return True
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in plain and p.default is p.empty for p in parameters) >= 2


class PredictController:
    """A loaded stable-baselines3 or sb3-contrib model: anything with `predict(observation, deterministic=)`.

    These models sample from their own generator; seed it with `model.set_random_seed`.
    """

    def __init__(self, model: Any, name: str | None = None) -> None:
        if getattr(getattr(model, "policy", None), "lstm_actor", None) is not None:
            raise InputError(
                f"{type(model).__name__} is a recurrent policy, and `predict` alone does not keep its state; "
                "wrap it in a class with act(observation, rng=None), and with reset() for the end of an episode"
            )
        self.model = model
        self.name = name or type(model).__name__

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Return the model's action: a sample, or with rng None the mean."""
        inputs = observation if isinstance(observation, dict) else np.asarray(observation)
        action, _ = self.model.predict(inputs, deterministic=rng is None)
        return np.asarray(action)


class _ModelFile(ABC):
    """A model in a file, run on batches of observations."""

    dtype: type[np.floating[Any]] = np.float32

    def __init__(self, path: str | Path, name: str | None) -> None:
        self.name = name or Path(path).stem
        if not Path(path).is_file():
            raise FileFormatError(f"{path} is not a file")

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Return the action for one observation or a batch."""
        rows = np.asarray(observation, self.dtype)
        actions = np.asarray(self._run(np.atleast_2d(rows)), np.float64)
        return np.asarray(actions[0] if rows.ndim == 1 else actions)

    @abstractmethod
    def _run(self, rows: NDArray[Any]) -> Any:
        """Return actions (n, action_size) for observations (n, observation_size)."""


class ScriptController(_ModelFile):
    """A TorchScript file whose forward maps observations (n, observation_size) to actions (n, action_size).

    Unlike all other files that blendctl loads, it is a program that torch executes: it needs trust_code=True.
    """

    def __init__(self, path: str | Path, name: str | None = None, *, trust_code: bool = False) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtraError("torch", extra="train") from None
        super().__init__(path, name)
        if not trust_code:
            raise InputError(
                f"{path} is TorchScript, a program that torch would run; if you trust it, use --trust-code or "
                "trust_code=True"
            )
        self._torch = torch
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of the TorchScript format
                self._module = torch.jit.load(str(path), map_location="cpu").eval()  # type: ignore[no-untyped-call]  # torch's own
        except RuntimeError as error:
            raise FileFormatError(f"{path} is not a TorchScript file: {str(error).splitlines()[0]}") from None

    def _run(self, rows: NDArray[Any]) -> Any:
        with self._torch.inference_mode():
            return self._module(self._torch.from_numpy(np.array(rows))).numpy()


@functools.cache
def _limit_onnx_memory() -> bool:
    """Limit the memory of all ONNX sessions of this process together; return whether that is possible."""
    import onnxruntime

    try:
        kind = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        info = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, onnxruntime.OrtMemType.DEFAULT)
        limits = onnxruntime.OrtArenaCfg({"max_mem": ONNX_MEMORY, "arena_extend_strategy": 1})
        onnxruntime.create_and_register_allocator(info, limits)
    except Exception:  # another part of the program has set one already
        return False
    return True


class OnnxController(_ModelFile):
    """An ONNX file whose first input is observations (n, observation_size) and whose first output is actions."""

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("onnxruntime", extra="onnx") from None
        super().__init__(path, name)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # faster for the small networks of a control loop
        options.log_severity_level = 4  # errors are raised
        if _limit_onnx_memory():
            options.add_session_config_entry("session.use_env_allocators", "1")
        try:
            # Folding would allocate what a hostile file asks for without the limit.
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=["ConstantFolding"]
            )
        except Exception as error:  # onnxruntime's errors share no base
            raise FileFormatError(f"{path} is not an ONNX model: {str(error).splitlines()[0]}") from None
        first = self._session.get_inputs()[0]
        self._input = first.name
        if "double" in first.type:
            self.dtype = np.float64

    def _run(self, rows: NDArray[Any]) -> Any:
        return self._session.run(None, {self._input: rows})[0]
