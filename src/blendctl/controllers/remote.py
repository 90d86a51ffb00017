"""A controller in another process or on another host, called over a socket within a deadline."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.wire import PROTOCOL, Address, Channel, WireError, frame_limit, pack_array, unpack_array
from blendctl.errors import InputError
from blendctl.user_errors import printable

MOST_ENTRIES = 1 << 16  # of an action
MOST_UNANSWERED = 16  # requests without an answer after which a connection is closed


class RemoteController:
    """A controller of `blendctl serve`, or of any server that implements the protocol of `controllers.wire`.

    Every call takes at most `deadline` seconds, including a reconnection; then it raises TimeoutError, and a blender
    lets another controller drive. A blender calls it in a thread, all remote controllers at once, and its deadline
    counts if it is shorter. The code of the controller stays on its host.
    """

    def __init__(self, address: str, *, token: str = "", deadline: float = 0.1, connect_within: float = 5.0) -> None:
        if not 0 < deadline < np.inf:
            raise InputError(f"deadline must be seconds > 0, actually: {deadline!r}")
        self.address = Address.parse(address)
        self.deadline = deadline
        self._token = token
        self._channel: Channel | None = None
        self._id = 0
        self._unanswered: dict[int, int] = {}  # requests of this connection -> rows of their answers
        self._lock = threading.Lock()
        self._foreseen: tuple[bytes, bytes, NDArray[Any], NDArray[Any]] | None = None  # observation, action, prediction
        self._predicted = False  # predictions were requested: ask for them with every action
        self._until = math.inf  # time.monotonic() by which every call must end
        self.name = ""
        self.action_size: int | None = None
        self.observation_size: int | None = None
        self._connect(time.monotonic() + connect_within)

    def end_calls_by(self, moment: float) -> None:
        """Let every call end when time.monotonic() is `moment`, if its own deadline is later."""
        self._until = moment

    def _connect(self, until: float) -> Channel:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self.address} did not answer within its deadline")
        try:
            channel = Channel(self.address.connect(left))
        except TimeoutError:
            raise TimeoutError(f"{self.address} did not answer within its deadline") from None
        except OSError as error:
            raise WireError(f"{self.address} cannot be reached: {error}") from None
        try:
            channel.send({"op": "hello", "protocol": PROTOCOL, "token": self._token}, until=until)
            welcome = channel.receive(until=until)
            if "error" in welcome:
                raise WireError(f"{self.address} refused: {printable(str(welcome['error']))}")
            self.action_size = _size(welcome, "action_size", most=MOST_ENTRIES)
            self.observation_size = _size(welcome, "observation_size", most=1 << 20)
        except OSError as error:
            channel.close()
            if isinstance(error, TimeoutError | WireError):
                raise
            raise WireError(f"{self.address} closed the connection: {error}") from None
        self._unanswered.clear()
        self.name = printable(str(welcome.get("name", "remote")))
        if welcome.get("predicts"):
            self.predict = self._predict  # makes it a Predictor
        self._channel = channel
        return channel

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Request an action; with `rng` a sample from the policy, with a seed drawn from `rng`."""
        seed = None if rng is None else int(rng.integers(2**63))
        message = {"op": "act", "observation": pack_array(observation), "seed": seed}
        answer = self._request(message | ({"predict": True} if self._predicted else {}))
        action = unpack_array(answer.get("action"))
        self._foreseen = None
        if self._predicted and "reward" in answer:
            self._foreseen = (_bytes(observation), _bytes(action), *_prediction(answer))
        return action

    def _predict(self, observation: ArrayLike, action: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the expected reward and cost of an action; those of the last action were received with it."""
        self._predicted = True
        if self._foreseen is not None and self._foreseen[:2] == (_bytes(observation), _bytes(action)):
            return self._foreseen[2:]
        message = {"op": "predict", "observation": pack_array(observation), "action": pack_array(action)}
        return _prediction(self._request(message))

    def _request(self, message: dict[str, Any]) -> dict[str, Any]:
        begun = time.monotonic()
        until = min(begun + self.deadline, self._until)
        try:
            if not self._lock.acquire(timeout=max(until - begun, 0.0)):
                raise TimeoutError
            try:
                answer = self._ask(message, until)
            finally:
                self._lock.release()
        except TimeoutError:
            limit = max(until - begun, 0.0) * 1e3
            raise TimeoutError(f"no answer from {self.address} within {limit:.3g} ms") from None
        except OSError as error:
            self.close()  # the next call connects again
            raise WireError(f"lost the connection to {self.address}: {error}") from None
        if "error" in answer:
            reason = answer["error"] if isinstance(answer["error"], str) else "it does not say why"
            raise WireError(f"{self.name} at {self.address} failed: {printable(reason[:500])}")
        return answer

    def _ask(self, message: dict[str, Any], until: float) -> dict[str, Any]:
        if len(self._unanswered) >= MOST_UNANSWERED:
            self.close()  # unresponsive: discard pending data
        channel = self._channel or self._connect(until)
        self._id += 1
        self._unanswered[self._id] = math.prod(message["observation"]["shape"][:-1])
        try:
            channel.limit = frame_limit(self.action_size or MOST_ENTRIES, rows=max(self._unanswered.values()))
            channel.send(message | {"id": self._id}, until=until)
        except TimeoutError:
            self.close()  # part of the request may have been sent: use a new connection
            raise
        while True:
            answer = channel.receive(until=until)
            number = answer.get("id")
            if not isinstance(number, int) or number not in self._unanswered:
                raise WireError("it sent an unrequested answer")
            del self._unanswered[number]
            if number == self._id:
                return answer  # others are late answers to earlier requests

    def close(self) -> None:
        """Close the connection; a later call opens a new one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def __enter__(self) -> RemoteController:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteController({str(self.address)!r}, deadline={self.deadline})"


def _bytes(values: ArrayLike) -> bytes:
    return np.asarray(values, np.float64).tobytes()


def _prediction(answer: dict[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    reward, cost = unpack_array(answer.get("reward")), unpack_array(answer.get("cost"))
    return reward[()], cost[()]


def _size(welcome: dict[str, Any], name: str, *, most: int) -> int | None:
    """Return a size that the server announces, or None; raise WireError for anything else."""
    size = welcome.get(name)
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= most):
        raise WireError(
            f"the server announces {name} {str(size)[:50]}; expected a whole number from 1 to {most}, or nil"
        )
    return size
