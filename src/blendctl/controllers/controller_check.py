"""Check a controller before it drives: shapes, determinism, latency, behaviour on odd input."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.controllers.adapters import FunctionController
from blendctl.controllers.base import can_predict

__all__ = ["CheckResult", "check_controller", "world_observations"]

Verdict = Literal["good", "note", "bad"]  # a note is information, not a fault
Finding = tuple[Verdict, str]

FIRST_ACTION_TIMEOUT = 10.0  # s


@dataclass(frozen=True)
class CheckResult:
    """Result of one check."""

    check: str
    verdict: Verdict
    message: str


def world_observations(world: str, count: int, *, seed: int = 0) -> tuple[FloatArray, int]:
    """Return observations (count, observation_size) of random driving in a world, and the action size."""
    from blendctl.envs import VectorWorld

    worlds = VectorWorld(world, 4, threads=1)
    rng = np.random.default_rng(seed)
    batches = [worlds.reset(seed=seed)[0]]
    size = worlds.batch.act_size
    actions = rng.uniform(-1, 1, (4, size))
    while 4 * len(batches) < count:
        if rng.random() < 0.1:
            actions = rng.uniform(-1, 1, (4, size))
        batches.append(worlds.step(actions)[0])
    worlds.close()
    return np.concatenate(batches)[:count], size


def check_controller(
    controller: Any,
    observations: FloatArray,
    *,
    action_size: int,
    deadline: float = 0.01,
    calls: int = 200,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[CheckResult]:
    """Try a controller on observations (n, observation_size); it passes if no result is "bad"."""
    if not callable(getattr(controller, "act", None)):
        return [CheckResult("act", "bad", "it has no method act(observation, rng=None)")]
    first = CheckResult("act", *_actions(controller, observations, action_size))
    if first.verdict == "bad":
        return [first]  # the other checks need an action
    few = observations[:20]
    checks: dict[str, Callable[[], Finding]] = {
        "without rng": lambda: _repeatable(controller, few),
        "with rng": lambda: _seeded(controller, few, action_size, seed),
        "observation": lambda: _leaves_observation(controller, observations[0]),
        "memory": lambda: _returns_new_arrays(controller, observations),
        "batch": lambda: _batch(controller, observations[:8], action_size),
        "latency": lambda: _latency(controller, observations, deadline=deadline, calls=calls, clock=clock),
        "odd input": lambda: _odd_input(controller, observations[0], action_size),
        "threads": lambda: _other_thread(controller, observations[0]),
        "predict": lambda: _prediction(controller, few),
    }
    return [first, *(CheckResult(name, *_guarded(check)) for name, check in checks.items())]


def _guarded(check: Callable[[], Finding]) -> Finding:
    """Run a check; an exception of the controller is a bad finding."""
    try:
        return check()
    except Exception as error:
        return "bad", f"raised {type(error).__name__}: {error}"


def _try(controller: Any, observation: NDArray[Any], action_size: int) -> Finding:
    return _guarded(lambda: _judge(controller.act(observation, None), action_size))


def _actions(controller: Any, observations: FloatArray, action_size: int) -> Finding:
    """Return the worst finding over all observations."""
    if _hangs(controller, observations[0]):
        return "bad", f"returned no action within {FIRST_ACTION_TIMEOUT:g} s"
    findings = [_try(controller, observation.copy(), action_size) for observation in observations]
    count = len(observations)
    for verdict in ("bad", "note"):
        messages = [message for one, message in findings if one == verdict]
        if messages:
            return verdict, f"{messages[0]} ({len(messages)} of {count} observations)"
    return "good", f"{findings[0][1]} on {count} observations"


def _hangs(controller: Any, observation: FloatArray) -> bool:
    answered = threading.Event()

    def work() -> None:
        with contextlib.suppress(Exception):  # the next call reports it
            controller.act(observation.copy(), None)
        answered.set()

    threading.Thread(target=work, daemon=True).start()
    return not answered.wait(FIRST_ACTION_TIMEOUT)


def _judge(action: Any, action_size: int) -> Finding:
    try:
        array = np.asarray(action)
    except ValueError:
        return "bad", f"returned {type(action).__name__}, which is not an array"
    if array.dtype.kind not in "fiub":
        return "bad", f"returned an array of type {array.dtype}; expected numbers"
    if array.shape != (action_size,):
        return "bad", f"returned an action of shape {array.shape}; expected ({action_size},)"
    if not np.isfinite(array).all():
        return "bad", "returned an action that is NaN or infinite"
    if np.abs(array).max(initial=0.0) > 1.0:
        return "note", f"returned an action beyond [-1, 1]: {array.tolist()}; worlds clip it"
    return "good", f"finite actions of shape ({action_size},)"


def _act_all(controller: Any, observations: FloatArray, rng: np.random.Generator | None) -> list[NDArray[Any]]:
    return [np.array(controller.act(observation.copy(), rng)) for observation in observations]


def _same(some: list[NDArray[Any]], others: list[NDArray[Any]]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def _repeatable(controller: Any, observations: FloatArray) -> Finding:
    if _same(_act_all(controller, observations, None), _act_all(controller, observations, None)):
        return "good", "the same observation yields the same action"
    return "bad", "the same observation yields different actions: it samples, or it has memory"


def _seeded(controller: Any, observations: FloatArray, action_size: int, seed: int) -> Finding:
    first, again, other = (_act_all(controller, observations, np.random.default_rng(s)) for s in (seed, seed, seed + 1))
    for verdict, message in (_judge(action, action_size) for action in first):
        if verdict == "bad":
            return verdict, message
    if not _same(first, again):
        return "bad", "the same seed yields different actions: it does not sample from rng alone"
    if _same(first, other):
        return "good", "deterministic: rng has no effect"
    return "good", "the same seed yields the same actions"


def _leaves_observation(controller: Any, observation: FloatArray) -> Finding:
    passed = observation.copy()
    controller.act(passed, None)
    if np.array_equal(passed, observation):
        return "good", "does not modify the observation"
    return "bad", "it modifies the observation that is passed to it"


def _returns_new_arrays(controller: Any, observations: FloatArray) -> Finding:
    action = controller.act(observations[0].copy(), None)
    before = np.array(action)
    if len(observations) > 1:
        controller.act(observations[-1].copy(), None)
    if np.array_equal(before, np.asarray(action)):
        return "good", "returns a new array for every action"
    return "note", "it returns the same array each time: copy it to keep it"


def _batch(controller: Any, observations: FloatArray, action_size: int) -> Finding:
    try:
        actions = np.asarray(controller.act(observations.copy(), None))
    except Exception:
        actions = np.empty(0)
    if actions.shape != (len(observations), action_size):
        if isinstance(controller, FunctionController):
            return "good", "it takes one observation at a time: in many worlds it is called once per world"
        return "note", "it takes one observation at a time: it cannot drive many worlds at once"
    if np.allclose(np.stack(_act_all(controller, observations, None)), actions, atol=1e-4):
        return "good", "a batch yields the same actions as its rows"
    return "bad", "a batch yields other actions than its rows"


def _latency(
    controller: Any, observations: FloatArray, *, deadline: float, calls: int, clock: Callable[[], float]
) -> Finding:
    rng = np.random.default_rng(0)
    seconds = []
    for i in range(calls):
        observation = observations[i % len(observations)].copy()
        start = clock()
        controller.act(observation, rng)
        seconds.append(clock() - start)
    median, high = np.percentile(seconds, [50, 99]) * 1e3
    message = f"median {median:.3g} ms, 99% within {high:.3g} ms, slowest {max(seconds) * 1e3:.3g} ms"
    late = sum(s > deadline for s in seconds)
    if late:
        verdict: Verdict = "bad" if late > calls // 100 else "note"
        return verdict, f"{message}; {late} of {calls} calls took over {deadline * 1e3:g} ms"
    return "good", f"{message}; all within {deadline * 1e3:g} ms"


def _odd_input(controller: Any, observation: FloatArray, action_size: int) -> Finding:
    odd: dict[str, NDArray[Any]] = {
        "zeros": np.zeros_like(observation),
        "huge numbers": np.full_like(observation, 1e6),
        "single precision": observation.astype(np.float32),
        "a view": np.repeat(observation, 2)[::2],
    }
    for name, values in odd.items():
        verdict, message = _try(controller, values, action_size)
        if verdict == "bad":
            return "bad", f"on {name} it {message}"
    return "good", f"takes {', '.join(odd)}"


def _other_thread(controller: Any, observation: FloatArray) -> Finding:
    findings: list[Finding] = []

    def work() -> Finding:
        controller.act(observation.copy(), None)
        return "good", "works in another thread"

    thread = threading.Thread(target=lambda: findings.append(_guarded(work)))
    thread.start()
    thread.join()
    verdict, message = findings[0]
    return verdict, message if verdict == "good" else f"in another thread it {message}"


def _prediction(controller: Any, observations: FloatArray) -> Finding:
    if not can_predict(controller):
        return "note", "it has no predictions: blend it with features=online"
    for observation in observations:
        action = np.asarray(controller.act(observation.copy(), None))  # type: ignore[attr-defined]  # checked before
        reward, cost = controller.predict(observation, action)
        if np.ndim(reward) or np.ndim(cost) or not (np.isfinite(reward) and np.isfinite(cost)):
            return "bad", f"returned ({reward}, {cost}); expected two finite numbers"
    return "good", "predicts finite rewards and costs"
