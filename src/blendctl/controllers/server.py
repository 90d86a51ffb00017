"""Serve a controller over a socket; clients see its actions, not its code or weights."""

from __future__ import annotations

import contextlib
import hmac
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from blendctl.controllers.base import Controller, Stateful, can_predict
from blendctl.controllers.wire import PROTOCOL, Address, Channel, WireError, frame_limit, pack_array, unpack_array
from blendctl.errors import InputError, StateError
from blendctl.recent_times import RecentTimes
from blendctl.user_errors import describe_error, raised_by_signal

HELLO_WITHIN = 5.0  # s: a client that has not sent its hello by then is disconnected
IDLE_AFTER = 10.0  # s: a client without requests for this long is idle, and may be disconnected


class _Client:
    """An open connection."""

    def __init__(self, connection: socket.socket, host: str) -> None:
        self.connection, self.host = connection, host
        self.welcome = False  # it has sent its hello
        self.active = time.monotonic()  # time of its last request


class ControllerServer:
    """Answer requests at an address, with one thread per connection.

    An address that other machines can reach needs a token. There is no encryption: outside of a trusted network, use
    a tunnel (ssh, WireGuard). Calls to the controller are serialised. At most `connections` clients are served, half of
    them from one host. When full, disconnect the oldest unauthenticated or idle client.
    """

    def __init__(
        self, controller: Controller, address: str = "tcp://127.0.0.1:0", *, token: str = "", connections: int = 16
    ) -> None:
        requested = Address.parse(address)
        if not requested.loopback and not token:
            raise InputError(f"other machines can reach {address}; serve there only with a token")
        self.controller = controller
        self._token = token.encode()
        self._connections = connections
        self._lock = threading.Lock()
        self._clients: list[_Client] = []  # oldest first
        self._admission = threading.RLock()  # a signal handler may close the server in the middle of an admission
        sizes = [getattr(controller, name, None) for name in ("observation_size", "action_size")]
        self._limit = frame_limit(*(size if isinstance(size, int) else None for size in sizes))
        self._closing = False
        self._listener = requested.listen()
        self.address = requested if requested.path else requested._replace(port=int(self._listener.getsockname()[1]))
        self._thread: threading.Thread | None = None
        self.requests = self.failures = 0  # for an action
        self.act_times = RecentTimes()
        self._warm_up()

    def _warm_up(self) -> None:
        """Call the controller once: compiling and importing must not delay the first client."""
        import msgpack  # noqa: F401  # the frames need it

        size = getattr(self.controller, "observation_size", None)
        if not isinstance(size, int) or not 0 < size < 1 << 20:
            return
        observation = np.zeros(size)
        try:
            action = self.controller.act(observation, np.random.default_rng(0))
            if can_predict(self.controller):
                self.controller.predict(observation, action)
            if isinstance(self.controller, Stateful):
                self.controller.reset()
        except BaseException as error:  # it may reject zeros; requests get their own errors
            if raised_by_signal(error):
                raise

    def start(self) -> ControllerServer:
        """Serve in a background thread."""
        if self._thread is not None:
            raise StateError("this server is running already")
        self._thread = threading.Thread(target=self.serve_forever, name="blendctl-serve", daemon=True)
        self._thread.start()
        return self

    def serve_forever(self) -> None:
        """Serve until `close` is called."""
        while not self._closing:
            try:
                connection, address = self._listener.accept()
            except OSError:
                return  # closed
            client = _Client(connection, address[0] if self.address.port else "")
            if self._admit(client):
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
            else:
                connection.close()

    def _admit(self, client: _Client) -> bool:
        """Accept a client, if necessary in place of an idle or unauthenticated one; return False if that fails."""
        with self._admission:
            same = [other for other in self._clients if other.host == client.host]
            per_host = self._connections if self.address.path else max(self._connections // 2, 1)
            crowd = same if len(same) >= per_host else self._clients
            if len(same) >= per_host or len(self._clients) >= self._connections:
                leaves = _who_leaves(crowd)
                if leaves is None:
                    return False
                self._clients.remove(leaves)
                _disconnect(leaves.connection)
            self._clients.append(client)
            return True

    def _serve(self, client: _Client) -> None:
        channel = Channel(client.connection)
        try:
            if self._handshake(channel):
                client.welcome, channel.limit = True, self._limit
                while not self._closing:
                    message = channel.receive()
                    answer = self._answer(message)
                    client.active = time.monotonic()
                    channel.send(answer, until=client.active + HELLO_WITHIN)
        except OSError:
            pass  # the client is gone or broke the protocol; others are not affected
        finally:
            with self._admission, contextlib.suppress(ValueError):
                self._clients.remove(client)
            channel.close()

    def _handshake(self, channel: Channel) -> bool:
        until = time.monotonic() + HELLO_WITHIN
        hello = channel.receive(until=until)
        token = hello.get("token")
        if hello.get("op") != "hello" or hello.get("protocol") != PROTOCOL:
            channel.send({"error": f"this server implements protocol {PROTOCOL}; begin with hello"}, until=until)
            return False
        if not isinstance(token, str) or not hmac.compare_digest(token.encode(), self._token):
            channel.send({"error": "wrong token"}, until=until)
            return False
        controller = self.controller
        sizes = {name: getattr(controller, name, None) for name in ("observation_size", "action_size")}
        welcome = {"protocol": PROTOCOL, "name": str(getattr(controller, "name", "controller"))}
        channel.send(welcome | sizes | {"predicts": can_predict(self.controller)}, until=until)
        return True

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._call(message)
        except BaseException as error:  # the thread must survive all errors of the controller
            answer = {"error": describe_error(error)}
        return {"id": message.get("id")} | answer

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        observation = unpack_array(message.get("observation"))
        match message.get("op"):
            case "act":
                seed = message.get("seed")
                if seed is not None and (not isinstance(seed, int) or seed < 0):
                    raise WireError(f"seed must be a whole number >= 0 or nil, actually: {seed!r}")
                rng = None if seed is None else np.random.default_rng(seed)
                with self._lock:
                    action = self._act(observation, rng)
                    answer = {"action": pack_array(action)}
                    if message.get("predict") is True and can_predict(self.controller):
                        reward, cost = self.controller.predict(observation, action)
                        answer |= {"reward": pack_array(reward), "cost": pack_array(cost)}
                return answer
            case "predict":
                if not can_predict(self.controller):
                    raise WireError("this controller does not predict")
                with self._lock:
                    reward, cost = self.controller.predict(observation, unpack_array(message.get("action")))
                return {"reward": pack_array(reward), "cost": pack_array(cost)}
        raise WireError(f"unknown op {message.get('op')!r}; allowed: act, predict")

    def _act(self, observation: Any, rng: np.random.Generator | None) -> Any:
        """Ask the controller, and count the request."""
        self.requests += 1
        begun = time.perf_counter()
        try:
            return self.controller.act(observation, rng)
        except BaseException:
            self.failures += 1
            raise
        finally:
            self.act_times.add(time.perf_counter() - begun)

    def status(self) -> dict[str, Any]:
        """Return requests for an action, failures and quantiles of the time of an action (s)."""
        name = str(getattr(self.controller, "name", "controller"))
        times = self.act_times.quantiles()
        return {"requests": self.requests, "failures": {name: self.failures}, "act_seconds": times}

    def close(self) -> None:
        """Stop serving and close all connections."""
        self._closing = True
        with self._admission:
            for connection in (self._listener, *(client.connection for client in self._clients)):
                _disconnect(connection)
                connection.close()
        if self.address.path:
            Path(self.address.path).unlink(missing_ok=True)
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def __enter__(self) -> ControllerServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _who_leaves(clients: list[_Client]) -> _Client | None:
    """Return the oldest unauthenticated client, else the one that is idle the longest, None if there is neither."""
    strangers = [client for client in clients if not client.welcome]
    if strangers:
        return strangers[0]
    idle = min(clients, key=lambda client: client.active)
    return idle if time.monotonic() - idle.active > IDLE_AFTER else None


def _disconnect(connection: socket.socket) -> None:
    """End a connection, which also ends the thread that reads from it."""
    with contextlib.suppress(OSError):  # not connected, or gone already
        connection.shutdown(socket.SHUT_RDWR)
