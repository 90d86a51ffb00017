"""Check a controller before it drives: shapes, determinism, latency, behaviour on odd input."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blendctl.controllers.adapters import FunctionController
from blendctl.controllers.base import Predictor

__all__ = ["CheckResult", "check_controller", "world_observations"]

FloatArray = NDArray[np.float64]

PATIENCE = 10.0  # s: a controller that has not given its first action by then hangs


@dataclass(frozen=True)
class CheckResult:
    """What one check found."""

    check: str
    verdict: Literal["good", "note", "bad"]  # a note is worth knowing, and no fault
    words: str


def world_observations(world: str, count: int, *, seed: int = 0) -> tuple[FloatArray, int]:
    """Give observations (count, observation_size) that random driving meets in a world, and the action size."""
    from blendctl.envs import VectorWorld

    worlds = VectorWorld(world, 4, threads=1)
    rng = np.random.default_rng(seed)
    seen = [worlds.reset(seed=seed)[0]]
    size = worlds.batch.act_size
    push = rng.uniform(-1, 1, (4, size))
    while 4 * len(seen) < count:
        if rng.random() < 0.1:
            push = rng.uniform(-1, 1, (4, size))
        seen.append(worlds.step(push)[0])
    worlds.close()
    return np.concatenate(seen)[:count], size


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
    """Try a controller on observations (n, observation_size) and tell what is wrong; a list without "bad" is a pass."""
    if not callable(getattr(controller, "act", None)):
        return [CheckResult("act", "bad", "it has no method act(observation, rng=None)")]
    found = [_worst("act", list(_answers(controller, observations, action_size)), len(observations))]
    if found[0].verdict == "bad":
        return found  # nothing else can be told
    found += _tried("without rng", lambda: [_repeats(controller, observations[:20])])
    found += _tried("with rng", lambda: [_draws(controller, observations[:20], action_size, seed)])
    found += _tried("observation", lambda: _check_side_effects(controller, observations))
    found += _tried("batch", lambda: [_batch(controller, observations[:8], action_size)])
    found += _tried(
        "latency", lambda: [_latency(controller, observations, deadline=deadline, calls=calls, clock=clock)]
    )
    found.append(_odd_input(controller, observations[0], action_size))
    found.append(_other_thread(controller, observations[0]))
    if isinstance(controller, Predictor) and getattr(controller, "context", True) is not None:
        found.append(_prediction(controller, observations[:20]))
    else:
        found.append(CheckResult("predict", "note", "it brings no predictions: blend it with features=online"))
    return found


def _tried(check: str, work: Callable[[], list[CheckResult]]) -> list[CheckResult]:
    """Make a check; one that a controller breaks by raising is bad, and the others go on."""
    try:
        return work()
    except Exception as error:
        return [CheckResult(check, "bad", f"raised {type(error).__name__}: {error}")]


def _answers(controller: Any, observations: FloatArray, action_size: int) -> Iterator[CheckResult]:
    if _hangs(controller, observations[0]):
        yield CheckResult("act", "bad", f"gave no action within {PATIENCE:g} s")
        return
    for observation in observations:
        try:
            action = controller.act(observation.copy(), None)
        except Exception as error:
            yield CheckResult("act", "bad", f"raised {type(error).__name__}: {error}")
            continue
        yield _judge_action(action, action_size)


def _hangs(controller: Any, observation: FloatArray) -> bool:
    answered = threading.Event()

    def work() -> None:
        with contextlib.suppress(Exception):  # what it raises is told when it is asked again
            controller.act(observation.copy(), None)
        answered.set()

    threading.Thread(target=work, daemon=True).start()
    return not answered.wait(PATIENCE)


def _judge_action(action: Any, action_size: int) -> CheckResult:
    try:
        array = np.asarray(action)
    except ValueError:
        return CheckResult("act", "bad", f"gave {type(action).__name__}, which is no array")
    if array.dtype.kind not in "fiub":
        return CheckResult("act", "bad", f"gave an array of type {array.dtype}; expected numbers")
    if array.shape != (action_size,):
        return CheckResult("act", "bad", f"gave an action of shape {array.shape}; expected ({action_size},)")
    if not np.isfinite(array).all():
        return CheckResult("act", "bad", "gave an action that is NaN or infinite")
    if np.abs(array).max(initial=0.0) > 1.0:
        return CheckResult("act", "note", f"gave an action beyond [-1, 1]: {array.tolist()}; worlds clip it")
    return CheckResult("act", "good", f"finite actions of shape ({action_size},)")


def _worst(check: str, findings: list[CheckResult], count: int) -> CheckResult:
    for verdict in ("bad", "note"):
        some = [f for f in findings if f.verdict == verdict]
        if some:
            return CheckResult(check, some[0].verdict, f"{some[0].words} ({len(some)} of {count} observations)")
    return CheckResult(check, "good", f"{findings[0].words} on {count} observations")


def _acts(controller: Any, observations: FloatArray, rng: np.random.Generator | None) -> list[NDArray[Any]]:
    return [np.array(controller.act(observation.copy(), rng)) for observation in observations]


def _same(some: list[NDArray[Any]], others: list[NDArray[Any]]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def _repeats(controller: Any, observations: FloatArray) -> CheckResult:
    if _same(_acts(controller, observations, None), _acts(controller, observations, None)):
        return CheckResult("without rng", "good", "the same observation gives the same action")
    words = "the same observation gives different actions: it draws, or remembers"
    return CheckResult("without rng", "bad", words)


def _draws(controller: Any, observations: FloatArray, action_size: int, seed: int) -> CheckResult:
    first, again, other = (_acts(controller, observations, np.random.default_rng(s)) for s in (seed, seed, seed + 1))
    for action in first:
        judged = _judge_action(action, action_size)
        if judged.verdict == "bad":
            return CheckResult("with rng", "bad", judged.words)
    if not _same(first, again):
        words = "the same seed gives different actions: it does not draw from rng alone"
        return CheckResult("with rng", "bad", words)
    if _same(first, other):
        return CheckResult("with rng", "good", "deterministic: rng changes nothing")
    return CheckResult("with rng", "good", "the same seed gives the same actions")


def _check_side_effects(controller: Any, observations: FloatArray) -> list[CheckResult]:
    given = observations[0].copy()
    first = controller.act(given, None)
    kept = np.array(first)
    unchanged = np.array_equal(given, observations[0])
    if len(observations) > 1:
        controller.act(observations[-1].copy(), None)
    alias = not np.array_equal(kept, np.asarray(first))
    return [
        CheckResult(
            "observation",
            "good" if unchanged else "bad",
            "left as it was" if unchanged else "it changes the observation that it is given",
        ),
        CheckResult(
            "memory",
            "note" if alias else "good",
            "it gives the same array each time: copy it to keep it" if alias else "every action is an array of its own",
        ),
    ]


def _batch(controller: Any, observations: FloatArray, action_size: int) -> CheckResult:
    try:
        actions = np.asarray(controller.act(observations.copy(), None))
    except Exception:
        actions = np.empty(0)
    if actions.shape != (len(observations), action_size):
        told = "it takes one observation at a time: "
        if isinstance(controller, FunctionController):
            return CheckResult("batch", "good", told + "in many worlds it is called for each")
        return CheckResult("batch", "note", told + "it cannot drive many worlds at once")
    rows = np.stack([controller.act(o.copy(), None) for o in observations])
    if np.allclose(rows, actions, atol=1e-4):
        return CheckResult("batch", "good", "a batch gives the same actions as its rows")
    return CheckResult("batch", "bad", "a batch gives other actions than its rows")


def _latency(
    controller: Any, observations: FloatArray, *, deadline: float, calls: int, clock: Callable[[], float]
) -> CheckResult:
    rng = np.random.default_rng(0)
    seconds = []
    for i in range(calls):
        observation = observations[i % len(observations)].copy()
        begun = clock()
        controller.act(observation, rng)
        seconds.append(clock() - begun)
    middle, high = np.percentile(seconds, [50, 99]) * 1e3
    words = f"median {middle:.3g} ms, 99% within {high:.3g} ms, slowest {max(seconds) * 1e3:.3g} ms"
    late = sum(s > deadline for s in seconds)
    if late:
        verdict: Literal["bad", "note"] = "bad" if late > calls // 100 else "note"
        return CheckResult("latency", verdict, f"{words}; {late} of {calls} calls took over {deadline * 1e3:g} ms")
    return CheckResult("latency", "good", f"{words}; all within {deadline * 1e3:g} ms")


def _odd_input(controller: Any, observation: FloatArray, action_size: int) -> CheckResult:
    odd = {
        "zeros": np.zeros_like(observation),
        "huge numbers": np.full_like(observation, 1e6),
        "single precision": observation.astype(np.float32),
        "a view": np.repeat(observation, 2)[::2],
    }
    for name, given in odd.items():
        try:
            judged = _judge_action(controller.act(given, None), action_size)
        except Exception as error:
            judged = CheckResult("", "bad", f"raised {type(error).__name__}: {error}")
        if judged.verdict == "bad":
            return CheckResult("odd input", "bad", f"on {name} it {judged.words}")
    return CheckResult("odd input", "good", f"takes {', '.join(odd)}")


def _other_thread(controller: Any, observation: FloatArray) -> CheckResult:
    errors: list[Exception] = []

    def work() -> None:
        try:
            controller.act(observation.copy(), None)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        return CheckResult("threads", "bad", f"in another thread it raised {type(errors[0]).__name__}: {errors[0]}")
    return CheckResult("threads", "good", "works in another thread")


def _prediction(controller: Predictor, observations: FloatArray) -> CheckResult:
    try:
        for observation in observations:
            action = np.asarray(controller.act(observation.copy(), None))  # type: ignore[attr-defined]  # checked before
            reward, cost = controller.predict(observation, action)
            if np.ndim(reward) or np.ndim(cost) or not (np.isfinite(reward) and np.isfinite(cost)):
                return CheckResult("predict", "bad", f"gave ({reward}, {cost}); expected two finite numbers")
    except Exception as error:
        return CheckResult("predict", "bad", f"raised {type(error).__name__}: {error}")
    return CheckResult("predict", "good", "predicts finite rewards and costs")
