"""A controller in another process or on another host, called over a socket within a deadline."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.wire import PROTOCOL, Address, Channel, WireError, pack_array, unpack_array
from blendctl.errors import InputError


class RemoteController:
    """A controller of `blendctl serve`, or of any server that implements the protocol of `controllers.wire`.

    Every call takes at most `deadline` seconds, including a reconnection; then it raises TimeoutError, and a blender
    lets another controller drive. The code of the controller stays on its host.
    """

    keeps_time = True  # it enforces its own deadline

    def __init__(self, address: str, *, token: str = "", deadline: float = 0.1, connect_within: float = 5.0) -> None:
        if not 0 < deadline < np.inf:
            raise InputError(f"deadline must be seconds > 0, actually: {deadline!r}")
        self.address = Address.parse(address)
        self.deadline = deadline
        self._token = token
        self._channel: Channel | None = None
        self._id = 0
        self.name = ""
        self.action_size: int | None = None
        self.observation_size: int | None = None
        self._connect(time.monotonic() + connect_within)

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
                raise WireError(f"{self.address} refused: {welcome['error']}")
            self.action_size, self.observation_size = (_size(welcome, n) for n in ("action_size", "observation_size"))
        except OSError:
            channel.close()
            raise
        self.name = str(welcome.get("name", "remote"))
        if welcome.get("predicts"):
            self.predict = self._predict  # only then it is a Predictor
        self._channel = channel
        return channel

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Request an action; with `rng` a sample from the policy, with a seed drawn from `rng`."""
        seed = None if rng is None else int(rng.integers(2**63))
        answer = self._request({"op": "act", "observation": pack_array(observation), "seed": seed})
        return unpack_array(answer.get("action"))

    def _predict(self, observation: ArrayLike, action: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Request the expected reward and cost of an action."""
        message = {"op": "predict", "observation": pack_array(observation), "action": pack_array(action)}
        answer = self._request(message)
        reward, cost = unpack_array(answer.get("reward")), unpack_array(answer.get("cost"))
        return reward[()], cost[()]

    def _request(self, message: dict[str, Any]) -> dict[str, Any]:
        until = time.monotonic() + self.deadline
        try:
            channel = self._channel or self._connect(until)
            self._id += 1
            try:
                channel.send(message | {"id": self._id}, until=until)
            except TimeoutError:
                self.close()  # a part of the request may be sent: use a new connection
                raise
            while (answer := channel.receive(until=until)).get("id") != self._id:
                pass  # a late answer to an earlier request
        except TimeoutError:
            raise TimeoutError(f"no answer from {self.address} within {self.deadline * 1e3:g} ms") from None
        except OSError as error:
            self.close()  # the next call connects again
            raise WireError(f"lost the connection to {self.address}: {error}") from None
        if "error" in answer:
            raise WireError(f"{self.name} at {self.address} failed: {answer['error']}")
        return answer

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


def _size(welcome: dict[str, Any], name: str) -> int | None:
    """Return a size that the server announces, or None; raise WireError for anything else."""
    size = welcome.get(name)
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 1 << 20):
        raise WireError(f"the server announces {name} {str(size)[:50]}; expected a positive whole number or nil")
    return size
