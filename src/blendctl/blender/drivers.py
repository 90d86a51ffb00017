"""Ask the controllers for actions: check them, keep deadlines, bench controllers that fail."""

from __future__ import annotations

import copy
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, Space
from numpy import ndarray
from numpy.typing import NDArray

from blendctl.blender.bench import Bench, BenchRules
from blendctl.blender.finite_check import is_positive
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.network import NetworkController
from blendctl.controllers.remote import RemoteController
from blendctl.errors import InputError
from blendctl.user_errors import describe_error, raised_by_signal

Action = NDArray[Any]
FLOAT = np.dtype(np.float64)
IMMUTABLE = (int, float, complex, str, bytes, np.generic, type(None))


class Isolated:
    """A controller in a thread, so that it cannot block the others.

    An answer after the deadline is discarded; until then the controller is busy.
    """

    def __init__(self, controller: Controller, name: str) -> None:
        self._orders: SimpleQueue[tuple[Any, Any] | tuple[()] | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, Refused | None]] = SimpleQueue()
        self._waiting = 0  # requests without an answer
        self.asked = False  # in this round
        # The thread holds no reference to this object, so that it ends when the object is dropped.
        arguments = (controller, self._orders, self._answers)
        threading.Thread(target=_work, args=arguments, name=f"blendctl-{name}", daemon=True).start()
        self.close = weakref.finalize(self, self._orders.put, None)  # end the thread after the present answer

    def start(self, observation: Any, rng: np.random.Generator | None) -> None:
        """Ask for an action, unless the controller still computes an earlier one; discard earlier answers."""
        self.asked = False
        while self._waiting:
            try:
                self._answers.get_nowait()
            except Empty:
                return
            self._waiting -= 1
        self.asked = True
        self._waiting += 1
        self._orders.put((observation, rng))

    def result(self, seconds: float) -> Any:
        """Wait for the answer; raise TimeoutError after `seconds`."""
        try:
            action, error = self._answers.get(timeout=max(seconds, 0.0))
        except Empty:
            raise TimeoutError("no answer within its deadline") from None
        self._waiting -= 1
        if error is not None:
            raise error
        return action

    def reset(self) -> None:
        """Reset the controller after its pending answers."""
        self._orders.put(())


def _work(controller: Controller, orders: SimpleQueue[Any], answers: SimpleQueue[Any]) -> None:
    """Answer orders: (observation, rng) asks for an action, () resets the controller, None ends the thread."""
    while (order := orders.get()) is not None:
        # The thread must survive everything that the controller raises, or it would seem to hang.
        try:
            if order:
                answers.put((controller.act(*order), None))
            elif isinstance(controller, Stateful):
                controller.reset()
        except BaseException as error:
            if order:  # a failed reset shows at the next request
                answers.put((None, Refused(f"raised {describe_error(error)}")))
        del order


class Drivers:
    """All controllers of a blender. Once the shape of actions is known, failures are events, not exceptions.

    With deadlines, a step happens within `one_deadline`. When time is up and another arm can drive, controllers in
    threads are no longer asked.
    """

    def __init__(
        self,
        controllers: Sequence[Controller],
        names: Sequence[str],
        *,
        rngs: Sequence[np.random.Generator | None],
        deadline: float | Mapping[str, float] | None,
        bench: BenchRules,
        action_shape: tuple[int, ...] | None,
        safe_action: Action | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.controllers, self.names = list(controllers), list(names)
        self.rngs = list(rngs)
        self.bench = Bench(len(names), bench)
        self.clock = clock
        self.deadlines = _deadlines(deadline, self.names)
        self.shape = _common_shape(controllers, names, action_shape, safe_action)
        self.safe_action = safe_action
        self.events: list[str] = []  # failures since the last `take_events`
        self.first_failures: dict[int, str] = {}  # by arm
        self.acted = [False] * len(self.names)  # whether an arm has ever proposed an action
        self._space: Space[Any] | None = None  # the environment's actions, if they are countable
        self.remote = [(arm, c) for arm, c in enumerate(controllers) if isinstance(c, RemoteController)]
        for arm, controller in self.remote:
            self.deadlines[arm] = min(controller.deadline, self.deadlines[arm] or math.inf)
        self.isolated = [
            Isolated(controller, name) if limit is not None and not _keeps_time(controller) else None
            for controller, name, limit in zip(controllers, names, self.deadlines, strict=True)
        ]
        self._spare = safe_action is not None or None in self.isolated  # something can drive without waiting
        self._begun = 0.0
        self._act = [_on_a_copy(controller) for controller in controllers]
        self.timed = any(limit is not None for limit in self.deadlines)
        self._arms = range(len(names))
        self._remember = {arm: c for arm, c in enumerate(controllers) if isinstance(c, Stateful)}

    def draw_from(self, rngs: Sequence[Any]) -> None:
        """Draw the noise of the actions from other generators, one per arm; `standard_normal` is all they need."""
        self.rngs = list(rngs)

    def take_events(self) -> list[str]:
        """Return and clear the failures since the last call."""
        events, self.events = self.events, []
        return events

    def propose(self, observation: Any, step: int) -> list[Action | None]:
        """Ask every fit controller; return an action per arm, None where it is benched or failed."""
        until = self.bench.until
        if self.timed:
            fit = {arm for arm in self._arms if step >= until[arm] and self._has_time(arm)}
            self._start(fit, observation)
            proposals = [self.ask(arm, observation, step) if arm in fit else None for arm in self._arms]
        else:
            proposals = []
            for arm in self._arms:  # a comprehension takes longer
                proposals.append(self.ask(arm, observation, step) if step >= until[arm] else None)
        if self.shape is None:
            self._settle_shape(proposals)
        return proposals

    @contextmanager
    def one_deadline(self) -> Iterator[None]:
        """Share one deadline within a control step."""
        self._start_clock()
        try:
            yield
        finally:
            for _, controller in self.remote:
                controller.end_calls_by(math.inf)

    def _start_clock(self) -> None:
        self._begun = self.clock()
        for arm, controller in self.remote:
            controller.end_calls_by(time.monotonic() + (self.deadlines[arm] or math.inf))

    def _has_time(self, arm: int) -> bool:
        """Return whether a controller may still be asked in this step; if no other can drive, restart the time."""
        limit = self.deadlines[arm]
        if self.isolated[arm] is None or limit is None or self.clock() - self._begun < limit:
            return True
        if self._spare:
            self.events.append(f"{self.names[arm]} was not asked: the time of this step was over")
            return False
        self._start_clock()
        return True

    def _start(self, arms: Iterable[int], observation: Any) -> None:
        for arm in arms:
            worker = self.isolated[arm]
            if worker is not None:
                worker.start(copy_observation(observation), self.rngs[arm])

    def ask(self, arm: int, observation: Any, step: int) -> Action | None:
        """Ask one controller; bench it and return None if it fails."""
        try:
            if self.timed:
                action = self._within_deadline(arm, observation)
            else:
                action = self._act[arm](observation, self.rngs[arm])
            # a few comparisons find the common case; everything else takes the full check
            if type(action) is ndarray and action.dtype is FLOAT and action.shape == self.shape and self._space is None:
                checked = action.copy()
                if not math.isfinite(sum(checked.ravel().tolist())):  # NaN, infinite, or too large to add
                    checked = self._checked(action)
            else:
                checked = self._checked(action)
            self.acted[arm] = True
            return checked
        except BaseException as error:
            if raised_by_signal(error):
                raise
            reason = str(error) if isinstance(error, Refused) else f"raised {describe_error(error)}"
            self._bench(arm, step, reason)
            return None

    def _bench(self, arm: int, step: int, reason: str) -> None:
        back_off = self.bench.fail(arm, step)
        self.first_failures.setdefault(arm, reason)
        self.events.append(f"{self.names[arm]} {reason}; benched for {back_off} steps")

    def ask_alone(self, arm: int, observation: Any, step: int) -> Action | None:
        """Ask one controller outside a round of proposals."""
        if self.timed:
            if not self._has_time(arm):
                return None
            self._start([arm], observation)
        return self.ask(arm, observation, step)

    def end_episode(self, step: int) -> None:
        """Reset the stateful controllers."""
        for arm, controller in self._remember.items():
            try:
                (self.isolated[arm] or controller).reset()
            except BaseException as error:
                if raised_by_signal(error):
                    raise
                self._bench(arm, step, f"failed in reset: {describe_error(error)}")

    def _within_deadline(self, arm: int, observation: Any) -> Any:
        limit, worker = self.deadlines[arm], self.isolated[arm]
        if worker is not None and limit is not None:
            if not worker.asked:
                raise Refused("was not asked: it had not answered an earlier step")
            try:
                return worker.result(self._begun + limit - self.clock())
            except TimeoutError:
                raise Refused(f"missed its deadline of {limit * 1e3:g} ms") from None
        begun = self.clock()
        action = self._act[arm](observation, self.rngs[arm])
        if limit is not None and self.clock() - begun > limit:
            raise Refused(f"missed its deadline of {limit * 1e3:g} ms")
        return action

    def _checked(self, action: Any) -> Action:
        try:
            array = np.array(action)
        except ValueError as error:
            raise Refused(f"returned an action that is not an array: {describe_error(error)}") from None
        if array.dtype.kind not in "fiub":
            raise Refused(f"returned an action of type {array.dtype}")
        if self.shape is not None and array.shape != self.shape:
            raise Refused(f"returned an action of shape {array.shape}, expected {self.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise Refused("returned an action that is NaN or infinite")
        if self._space is not None and not _contains(self._space, array):
            raise Refused(f"returned the action {array.tolist()}, which is not in {self._space}")
        return array

    def restrict(self, space: Space[Any]) -> None:
        """Accept only actions of a countable space; others are failures of their controller."""
        if self.safe_action is not None and not _contains(space, self.safe_action):
            raise InputError(f"safe_action must be in {space}, actually: {self.safe_action.tolist()}")
        self._space = space

    def _settle_shape(self, proposals: Sequence[Action | None]) -> None:
        shapes = {self.names[arm]: action.shape for arm, action in enumerate(proposals) if action is not None}
        if shapes:
            _expect_one(shapes, self.safe_action)
            self.shape = next(iter(shapes.values()))

    def close(self) -> None:
        """End the threads."""
        for worker in self.isolated:
            if worker is not None:
                worker.close()


class Refused(Exception):
    """The action of a controller cannot be used; the message follows the controller's name."""


def _deadlines(deadline: float | Mapping[str, float] | None, names: Sequence[str]) -> list[float | None]:
    if isinstance(deadline, Mapping):
        unknown = [name for name in deadline if name not in names]
        if unknown:
            raise InputError(f"deadline names {unknown}, the controllers are: {', '.join(names)}")
        limits = [deadline.get(name) for name in names]
    else:
        limits = [deadline] * len(names)
    for limit in limits:
        if limit is not None and not is_positive(limit):
            raise InputError(f"a deadline must be seconds > 0, actually: {limit!r}")
    return limits


def _contains(space: Space[Any], action: Action) -> bool:
    return bool(space.contains(action.item() if isinstance(space, Discrete) and action.size == 1 else action))


def _keeps_time(controller: Controller) -> bool:
    """Return whether a controller cannot hang: its work is bounded, or it enforces a deadline."""
    return isinstance(controller, NetworkController) or getattr(controller, "keeps_time", False) is True


def _on_a_copy(controller: Controller) -> Callable[[Any, Any], Any]:
    """Return `act` on a copy of the observation, so that writing into it does not affect the others."""
    act = controller.act
    if isinstance(controller, NetworkController):
        return act  # it only reads
    return lambda observation, rng: act(copy_observation(observation), rng)


def _common_shape(
    controllers: Sequence[Controller],
    names: Sequence[str],
    declared: tuple[int, ...] | None,
    safe_action: Action | None,
) -> tuple[int, ...] | None:
    shapes: dict[str, tuple[int, ...]] = {
        name: (size,)
        for controller, name in zip(controllers, names, strict=True)
        if isinstance(size := getattr(controller, "action_size", None), int)
    }
    if declared is not None:
        shapes["action_shape"] = declared
    if not shapes:
        return None  # taken from the first actions
    _expect_one(shapes, safe_action)
    return next(iter(shapes.values()))


def _expect_one(shapes: dict[str, tuple[int, ...]], safe_action: Action | None) -> None:
    if safe_action is not None:
        shapes = shapes | {"safe_action": safe_action.shape}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InputError(f"the controllers' actions must have one shape, actually: {listed}")


def copy_observation(observation: Any) -> Any:
    """Copy an observation that the environment or a controller may overwrite.

    >>> observation = {"lidar": np.zeros(2), "contacts": [False]}
    >>> copy_observation(observation)["contacts"].append(True)
    >>> observation
    {'lidar': array([0., 0.]), 'contacts': [False]}
    """
    kind = type(observation)
    if kind is ndarray and not observation.dtype.hasobject:
        return observation.copy()
    if kind is dict:
        return {name: copy_observation(part) for name, part in observation.items()}
    if kind is list or kind is tuple:
        return kind(copy_observation(part) for part in observation)
    if isinstance(observation, IMMUTABLE):
        return observation
    try:
        return copy.deepcopy(observation)
    except Exception:
        return observation  # it cannot be copied, for example a simulator's handle
