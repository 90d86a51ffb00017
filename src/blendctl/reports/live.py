"""Show a drive on a local web page while it goes on: the page of the report, fed by server-sent events.

The server listens on this machine only, answers nothing but the page and its events, and ends with the command.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from blendctl.blender import Record
from blendctl.envs.pose_recorder import PoseRecorder
from blendctl.errors import InputError
from blendctl.reports.binary_columns import as_script_text
from blendctl.reports.html import page_html
from blendctl.reports.live_rows import LiveRows

__all__ = ["LiveView"]

HOST = "127.0.0.1"
EVERY = 0.1  # s between two messages
PATIENCE = 5.0  # s without a message after which a line keeps the connection open
LONGEST = 30_000_000  # characters that are kept for pages that come late
LAST_WORDS = 2.0  # s for which pages that are open may still fetch the end


class LiveView:
    """A page on loopback that shows whatever drive it is told to follow."""

    def __init__(self, world: str, names: list[str], *, objectives: list[str], port: int = 0) -> None:
        self.world, self.names, self.objectives = world, names, objectives
        self.scenery: dict[str, Any] | None = None
        self._story: list[str] = []  # the messages so far, for pages that come late
        self._forgotten = 0  # messages that stood before them
        self._began = 0  # the message with which the present episode began
        self._present = ("", -1)  # drive and episode
        self._news = threading.Condition()
        self._over = False
        self._readers = 0
        self._tracker: PoseRecorder | None = None
        self._rows = LiveRows([], "")
        self._sent = 0.0
        try:
            self._server = _Server((HOST, port), self)
        except OSError as error:
            raise InputError(f"the live page cannot listen on port {port}: {error}; try another, or --port 0") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="blendctl-live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self._server.server_address[1]}/"

    def follow(self, title: str, tracker: PoseRecorder) -> Callable[[Record], None]:
        """Follow a drive; give what must be called with each of its records."""
        self._tracker, self.scenery = tracker, tracker.scenery
        self._rows = LiveRows(self.objectives, title)
        words = "The blend drives." if title == "blended" else f"Now {title}, to compare with."
        self._tell("lead", {"verdict": words, "scenery": self.scenery})

        def publish(record: Record) -> None:
            self._rows.add(record)
            if time.perf_counter() - self._sent > EVERY:
                self.catch_up()

        return publish

    def catch_up(self) -> None:
        """Send what has come since the last message."""
        self._sent = time.perf_counter()
        if self._tracker is None:
            return
        for rows in self._rows.take(self._tracker.fresh()):
            if (rows["drive"], rows["episode"]) != self._present:
                self._present, self._began = (
                    (rows["drive"], rows["episode"]),
                    self._forgotten + len(self._story),
                )
                self._forget()
            self._tell("rows", rows)

    def close(self) -> None:
        """Say that it is over, let open pages fetch that, and stop; closing twice is allowed."""
        if self._over:
            return
        self.catch_up()
        self._tell("end", {"verdict": "The drive is over; this page keeps what it has seen.", "banner": []})
        with self._news:
            self._over = True
            self._news.notify_all()
        deadline = time.monotonic() + LAST_WORDS
        while self._readers and time.monotonic() < deadline:
            time.sleep(0.02)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def page(self) -> bytes:
        """Give the page as it is served: without data, which comes by events."""
        data = {
            "kind": "live", "title": self.world, "verdict": "The drive is about to begin.", "banner": [],
            "names": self.names, "objectives": self.objectives, "table": [], "scenery": self.scenery,
            "episodes": [], "columns": {}, "blob": "", "moments": [], "charts": [], "cautions": [],
            "provenance": None,
        }  # fmt: skip
        return page_html(data).encode()

    def _tell(self, event: str, data: Any) -> None:
        message = f"event: {event}\ndata: {as_script_text(data)}\n\n"
        with self._news:
            self._story.append(message)
            self._news.notify_all()

    def _forget(self) -> None:
        """Keep a long drive from filling the memory: pages that come late see it from the present episode on."""
        with self._news:
            if sum(len(message) for message in self._story) > LONGEST:
                old = self._began - self._forgotten
                self._story = self._story[old:]
                self._forgotten += old

    def listen(self, heard: int) -> tuple[list[tuple[int, str]], bool]:
        """Wait for messages after number `heard`; give them with their numbers, and whether there will be no more."""
        with self._news:
            if self._forgotten + len(self._story) <= heard and not self._over:
                self._news.wait(PATIENCE)
            first = max(heard, self._forgotten)
            found = list(enumerate(self._story[first - self._forgotten :], start=first + 1))
            return found, self._over

    def count_reader(self, more: int) -> None:
        """Count the pages that listen."""
        with self._news:
            self._readers += more


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, address: tuple[str, int], view: LiveView) -> None:
        self.view = view
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was closed is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the page or its events; a page from elsewhere may not ask."""
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/":
            page = self.server.view.page()
            self._head("text/html; charset=utf-8", {"Content-Length": str(len(page))})
            self.wfile.write(page)
        elif self.path == "/events":
            self._head("text/event-stream; charset=utf-8", {"Connection": "close"})
            self._stream()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _stream(self) -> None:
        told = self.headers.get("Last-Event-ID") or ""
        view, heard, over = self.server.view, int(told) if told.isdecimal() else 0, False
        view.count_reader(1)
        try:
            while not over:
                messages, over = view.listen(heard)
                for number, message in messages:
                    self.wfile.write(f"id: {number}\n{message}".encode())
                    heard = number
                if not messages:
                    self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        finally:
            view.count_reader(-1)
            self.close_connection = True

    def _head(self, kind: str, more: dict[str, str]) -> None:
        self.send_response(HTTPStatus.OK)
        told = {"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} | more
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for the drive."""
