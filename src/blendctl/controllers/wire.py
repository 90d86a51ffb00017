"""The protocol between a remote controller and its clients: frames, arrays, addresses.

A connection is TCP or a Unix socket. Both sides send frames: four bytes of length (big-endian), then a
msgpack map of that length: at most 4 KiB until both have sent hello, then as much as the announced sizes need
(`frame_limit`). A map has at most 16 entries, a list 32, and a frame 64 maps and lists. An array is
{"type": "<f8", "shape": [60], "data": bytes}. The client sends first:

    -> {"op": "hello", "protocol": 1, "token": "..."}
    <- {"protocol": 1, "name": "ppo", "observation_size": 60 or nil, "action_size": 2 or nil, "predicts": true}

A wrong token or protocol is answered with {"error": "..."}, and the connection is closed. Requests follow:

    -> {"op": "act", "id": 7, "observation": array, "seed": 123 or nil, "predict": true or absent}
    <- {"id": 7, "action": array}, and "reward" and "cost" of the action if asked for
    -> {"op": "predict", "id": 8, "observation": array, "action": array}
    <- {"id": 8, "reward": array, "cost": array}

or {"id": 7, "error": "..."}. With a seed the action is a sample from the policy, with nil it is the mean. Answers have
the order of their requests; the client recognises a late one by its id and drops it. An unrequested answer ends the
connection.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.errors import BlendctlError, InputError

PROTOCOL = 1
LARGEST_FRAME = 16 << 20  # bytes
SMALLEST_LIMIT = 4 << 10  # bytes of a frame without arrays, and of any frame before hello
MOST_ROWS = 1024  # observations per request, where their size is known
MOST_CONTAINERS = 64  # maps and lists per frame
_LENGTH = struct.Struct(">I")
_TYPES = frozenset(["<f8", "<f4", "<i8", "<i4", "|u1", "|b1"])


class WireError(BlendctlError, ConnectionError):
    """The other side broke the protocol, refused the connection, or closed it."""


class Address(NamedTuple):
    """The address of a server: tcp://host:port or unix:/path."""

    host: str  # "" for a Unix socket
    port: int
    path: str  # "" for TCP

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address.

        >>> Address.parse("tcp://127.0.0.1:7001")
        Address(host='127.0.0.1', port=7001, path='')
        >>> Address.parse("unix:/run/ppo.sock").path
        '/run/ppo.sock'
        """
        if text.startswith("unix:"):
            path = text.removeprefix("unix:").removeprefix("//")
            if path:
                return cls("", 0, path)
        parts = urlsplit(text)
        try:
            if parts.scheme == "tcp" and parts.hostname and parts.port is not None:
                return cls(parts.hostname, parts.port, "")
        except ValueError:
            pass
        raise InputError(f'an address is "tcp://HOST:PORT" or "unix:/PATH", actually: "{text}"')

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return bool(self.path) or self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False  # a host name may resolve to any address

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"unix:{self.path}" if self.path else f"tcp://{host}:{self.port}"

    def connect(self, seconds: float) -> socket.socket:
        """Connect as a client."""
        if self.path:
            with contextlib.ExitStack() as on_error:
                connection = on_error.enter_context(socket.socket(socket.AF_UNIX))
                connection.settimeout(seconds)
                connection.connect(self.path)
                on_error.pop_all()
            return connection
        connection = socket.create_connection((self.host, self.port), timeout=seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def listen(self) -> socket.socket:
        """Listen as a server; only the owner can connect to a Unix socket."""
        with contextlib.ExitStack() as on_error:
            try:
                if not self.path:
                    family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
                    return socket.create_server((self.host, self.port), family=family, backlog=16)
                listener = on_error.enter_context(socket.socket(socket.AF_UNIX))
                self._remove_stale_socket()
                listener.bind(self.path)
                Path(self.path).chmod(0o600)
                listener.listen(16)
            except OSError as error:
                raise WireError(f"cannot listen at {self}: {error}") from None
            on_error.pop_all()
            return listener

    def _remove_stale_socket(self) -> None:
        """Remove the socket of a server that was killed: nothing listens there."""
        path = Path(self.path)
        if path.is_socket():
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(1.0)
                try:
                    probe.connect(self.path)
                except ConnectionRefusedError:
                    path.unlink(missing_ok=True)


def frame_limit(*sizes: int | None, rows: int = MOST_ROWS) -> int:
    """Return the largest frame for arrays of `rows` rows of these sizes; None is an unknown size."""
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return LARGEST_FRAME
    return min(SMALLEST_LIMIT + 8 * rows * (2 + sum(known)), LARGEST_FRAME)


class Channel:
    """Frames over a socket, with a deadline for each; a partly received frame is kept for the next call."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.limit = SMALLEST_LIMIT  # bytes of a frame that is received; raise it after hello
        self._buffer = bytearray()

    def send(self, message: dict[str, Any], *, until: float | None = None) -> None:
        """Send a frame; TimeoutError after the time `until` (of time.monotonic)."""
        import msgpack

        body = msgpack.packb(message)
        if len(body) > LARGEST_FRAME:
            raise WireError(f"a frame of {len(body)} bytes is too long; allowed: {LARGEST_FRAME}")
        self._set_timeout(until)
        self.socket.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self, *, until: float | None = None) -> dict[str, Any]:
        """Receive a frame; TimeoutError after the time `until`, WireError if the other side is gone."""
        self._set_timeout(until)  # also for frames that are here already
        self._fill(_LENGTH.size, until)
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > self.limit:
            raise WireError(f"a frame of {length} bytes was announced; allowed: {self.limit}")
        self._fill(_LENGTH.size + length, until)
        body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
        del self._buffer[: _LENGTH.size + length]
        return unpack_frame(body)

    def _fill(self, size: int, until: float | None) -> None:
        while len(self._buffer) < size:
            self._set_timeout(until)
            received = self.socket.recv(1 << 16)
            if not received:
                raise WireError("the other side closed the connection")
            self._buffer += received

    def _set_timeout(self, until: float | None) -> None:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("the deadline has passed")
        self.socket.settimeout(left)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


def unpack_frame(body: bytes) -> dict[str, Any]:
    """Return the map of a frame; the work is limited by the number of its parts, not by its length."""
    import msgpack

    left = MOST_CONTAINERS

    def count(part: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {MOST_CONTAINERS} maps and lists")
        return part

    try:
        message = msgpack.unpackb(
            body, object_hook=count, list_hook=count, max_map_len=16, max_array_len=32, max_str_len=SMALLEST_LIMIT,
            max_ext_len=0,
        )  # fmt: skip
    except Exception as error:  # msgpack's errors share no base
        raise WireError(f"a frame is not allowed: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(message, dict):
        raise WireError(f"a frame must be a map, actually: {type(message).__name__}")
    return message


def pack_array(values: ArrayLike) -> dict[str, Any]:
    """Convert an array to a map."""
    array = np.asarray(values)
    array = np.array(array, order="C", dtype=array.dtype.newbyteorder("<"))  # keeps the shape of a scalar
    if array.dtype.str not in _TYPES:
        raise WireError(f"arrays of type {array.dtype} cannot be sent; allowed: {', '.join(sorted(_TYPES))}")
    return {"type": array.dtype.str, "shape": list(array.shape), "data": array.tobytes()}


def unpack_array(message: Any) -> NDArray[Any]:
    """Convert a map to an array; raise WireError for anything else."""
    try:
        kind, shape, data = message["type"], [int(n) for n in message["shape"]], message["data"]
        if kind not in _TYPES or not isinstance(data, bytes) or min(shape, default=0) < 0:
            raise ValueError(f"type {kind!r}, shape {shape}")
        return np.frombuffer(data, np.dtype(kind)).reshape(shape).copy()
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WireError(f"an array was expected, actually something else: {error}") from None
