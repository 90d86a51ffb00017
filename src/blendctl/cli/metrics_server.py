"""Answer requests for metrics over HTTP, on this machine only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTENT = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def metrics_server(text: Callable[[], str], port: int) -> Iterator[str]:
    """Serve what a function returns at /metrics of a loopback port, 0 selects one; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.split("?")[0] == "/metrics"
            body = text().encode() if known else b"metrics are at /metrics\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", CONTENT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: a scrape is not an event."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="blendctl-metrics", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
        finally:
            server.shutdown()
            thread.join(timeout=5.0)
