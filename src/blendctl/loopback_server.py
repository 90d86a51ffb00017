"""An HTTP server for programs of this machine: few connections, short waits, no requests from pages of other hosts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
MOST_CONNECTIONS = 32
PATIENCE = 5.0  # s between two pieces of a request


class LoopbackServer(ThreadingHTTPServer):
    """Serve the requests of a handler on the loopback address; port 0 selects one.

    When the server is full, it closes the connection that has waited longest without a complete request.
    """

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, port: int, handler: type[LoopbackHandler]) -> None:
        self._open: dict[socket.socket, bool] = {}  # oldest first -> whether its request is complete
        self._admission = threading.Lock()
        super().__init__((HOST, port), handler)
        self.port = int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Accept a connection; return False if there is no room for it."""
        with self._admission:
            if len(self._open) >= MOST_CONNECTIONS:
                leaves = next((one for one, whole in self._open.items() if not whole), None)
                if leaves is None:
                    return False
                del self._open[leaves]
                with suppress(OSError):  # it is gone already
                    leaves.shutdown(socket.SHUT_RDWR)
            self._open[request] = False
            return True

    def note_request(self, connection: socket.socket) -> None:
        """Record that a connection has sent a complete request: it keeps its place."""
        with self._admission:
            if connection in self._open:
                self._open[connection] = True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._admission:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients may disconnect or send nonsense."""


class LoopbackHandler(BaseHTTPRequestHandler):
    """Answer GET requests by `answer`; check Host, so that pages of other hosts cannot read what is served."""

    server: LoopbackServer
    timeout = PATIENCE

    def answer(self) -> None:
        """Answer the request for `self.path`."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Refuse requests from pages of other hosts, and answer the rest."""
        self.server.note_request(self.connection)
        if self.headers.get("Host") in (f"{HOST}:{self.server.port}", f"localhost:{self.server.port}"):
            self.answer()
        else:
            self.send_error(HTTPStatus.FORBIDDEN)

    def send_head(self, kind: str, more: Mapping[str, str], *, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Send the status and the headers."""
        self.send_response(status)
        headers = {"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **more}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_body(self, kind: str, body: bytes, *, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Send a complete response."""
        self.send_head(kind, {"Content-Length": str(len(body))}, status=status)
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the command."""
