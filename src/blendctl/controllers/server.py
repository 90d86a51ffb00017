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

from blendctl.controllers.base import Controller, Predictor
from blendctl.controllers.wire import PROTOCOL, Address, Channel, WireError, pack_array, unpack_array
from blendctl.errors import InputError, StateError

HELLO_WITHIN = 5.0  # s: a client that has not sent its hello by then is disconnected


class ControllerServer:
    """Answer requests at an address, with one thread per connection.

    An address that other machines can reach needs a token. There is no encryption: outside of a trusted network, use
    a tunnel (ssh, WireGuard). Calls to the controller are serialised.
    """

    def __init__(
        self, controller: Controller, address: str = "tcp://127.0.0.1:0", *, token: str = "", connections: int = 16
    ) -> None:
        requested = Address.parse(address)
        if not requested.loopback and not token:
            raise InputError(f"other machines can reach {address}; serve there only with a token")
        self.controller = controller
        self._token = token.encode()
        self._slots = threading.BoundedSemaphore(connections)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closing = False
        self._listener = requested.listen()
        self.address = requested if requested.path else requested._replace(port=int(self._listener.getsockname()[1]))
        self._thread: threading.Thread | None = None

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
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            if not self._slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        channel = Channel(connection)
        self._open.add(connection)
        try:
            connection.settimeout(HELLO_WITHIN)
            if self._handshake(channel):
                while not self._closing:
                    channel.send(self._answer(channel.receive()))
        except OSError:
            pass  # the client is gone or broke the protocol; others are not affected
        finally:
            self._open.discard(connection)
            channel.close()
            self._slots.release()

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
        predicts = isinstance(controller, Predictor) and getattr(controller, "context", True) is not None
        channel.send(welcome | sizes | {"predicts": predicts}, until=until)
        return True

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._call(message)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
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
                    return {"action": pack_array(self.controller.act(observation, rng))}
            case "predict":
                if not isinstance(self.controller, Predictor):
                    raise WireError("this controller does not predict")
                with self._lock:
                    reward, cost = self.controller.predict(observation, unpack_array(message.get("action")))
                return {"reward": pack_array(reward), "cost": pack_array(cost)}
        raise WireError(f"unknown op {message.get('op')!r}; allowed: act, predict")

    def close(self) -> None:
        """Stop serving and close all connections."""
        self._closing = True
        for connection in (self._listener, *list(self._open)):
            with contextlib.suppress(OSError):  # not connected, or gone already
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        if self.address.path:
            Path(self.address.path).unlink(missing_ok=True)
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def __enter__(self) -> ControllerServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
