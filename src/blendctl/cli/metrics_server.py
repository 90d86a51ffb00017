"""Answer requests for metrics over HTTP, on this machine only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from blendctl.errors import InputError
from blendctl.loopback_server import HOST, LoopbackHandler, LoopbackServer
from blendctl.user_errors import describe_error

CONTENT = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def metrics_server(text: Callable[[], str], port: int) -> Iterator[str]:
    """Serve the text of a function at /metrics of a loopback port (0 selects one); yield the address."""

    class MetricsHandler(LoopbackHandler):
        def answer(self) -> None:
            if self.path.split("?")[0] != "/metrics":
                self.send_body(CONTENT, b"metrics are at /metrics\n", status=HTTPStatus.NOT_FOUND)
                return
            try:
                body, status = text().encode("utf-8", "replace"), HTTPStatus.OK
            except Exception as error:  # the blender may be in the middle of a step
                body, status = f"{describe_error(error)}\n".encode(), HTTPStatus.INTERNAL_SERVER_ERROR
            self.send_body(CONTENT, body, status=status)

    try:
        server = LoopbackServer(port, MetricsHandler)
    except OSError as error:
        raise InputError(f"metrics cannot be served on port {port}: {error}; try another, or 0") from None
    with server:
        thread = threading.Thread(target=server.serve_forever, name="blendctl-metrics", daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{server.port}/metrics"
        finally:
            server.shutdown()
            thread.join(timeout=5.0)
