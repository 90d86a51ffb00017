"""A controller in another process or on another host, asked over a socket within a deadline."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.wire import PROTOCOL, Address, Channel, WireError, pack_array, unpack_array
from blendctl.errors import InputError

__all__ = ["RemoteController"]


class RemoteController:
    """A controller that `blendctl serve` offers, or anything that speaks the protocol of `controllers.wire`.

    Every call takes at most `deadline` seconds, connecting again after a loss included; then it raises, which a
    blender answers by letting another drive. The code of the controller stays where it is.
    """

    keeps_time = True  # it has a deadline of its own

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
            told = channel.receive(until=until)
            if "error" in told:
                raise WireError(f"{self.address} refused: {told['error']}")
        except OSError:
            channel.close()
            raise
        self.name = str(told.get("name", "remote"))
        self.action_size, self.observation_size = told.get("action_size"), told.get("observation_size")
        if told.get("predicts"):
            self.predict = self._predict  # so that it counts as a Predictor only if it is one
        self._channel = channel
        return channel

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Ask for an action; with `rng` a draw, decided by a seed that is sent along."""
        seed = None if rng is None else int(rng.integers(2**63))
        told = self._ask({"op": "act", "observation": pack_array(observation), "seed": seed})
        return unpack_array(told.get("action"))

    def _predict(self, observation: ArrayLike, action: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Ask for the expected reward and cost of an action."""
        told = self._ask({"op": "predict", "observation": pack_array(observation), "action": pack_array(action)})
        reward, cost = unpack_array(told.get("reward")), unpack_array(told.get("cost"))
        return reward[()], cost[()]

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        until = time.monotonic() + self.deadline
        try:
            channel = self._channel or self._connect(until)
            self._id += 1
            try:
                channel.send(message | {"id": self._id}, until=until)
            except TimeoutError:
                self.close()  # half a question may be on its way: begin anew
                raise
            while (answer := channel.receive(until=until)).get("id") != self._id:
                pass  # an answer that came too late for an earlier question
        except TimeoutError:
            raise TimeoutError(f"no answer from {self.address} within {self.deadline * 1e3:g} ms") from None
        except OSError as error:
            self.close()  # the next call connects anew
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteController({str(self.address)!r}, deadline={self.deadline})"
