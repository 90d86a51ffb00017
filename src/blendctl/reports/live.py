"""Show a running blend on a local web page: the page of a report, fed by server-sent events.

The server listens on the loopback interface only, serves only the page and its events, and ends with the command.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from blendctl.blender import Record
from blendctl.envs.pose_recorder import PoseRecorder
from blendctl.errors import InputError
from blendctl.loopback_server import HOST, LoopbackHandler, LoopbackServer
from blendctl.reports.binary_columns import as_script_text
from blendctl.reports.html import page_html
from blendctl.reports.live_rows import LiveRows
from blendctl.reports.page import Page, Section
from blendctl.reports.page_data import Headline, Replay

EVERY = 0.1  # s between two messages
KEEP_ALIVE = 5.0  # s without a message until a comment keeps the connection open
LONGEST = 30_000_000  # characters of messages that are kept for pages that connect late
GRACE = 2.0  # s for open pages to fetch the last messages


class LiveView:
    """Serve a page on loopback that follows a run."""

    def __init__(self, world: str, names: list[str], *, objectives: list[str], port: int = 0) -> None:
        self.world, self.names, self.objectives = world, names, objectives
        self.scenery: dict[str, Any] | None = None
        self._messages: list[str] = []  # for pages that connect late
        self._dropped = 0  # number of earlier messages, which were dropped
        self._episode_at = 0  # number of the first message of the current episode
        self._episode = ("", -1)  # title of the run, and episode
        self._changed = threading.Condition()
        self._over = False
        self._readers = 0
        self._poses: PoseRecorder | None = None
        self._rows = LiveRows([], "")
        self._sent = 0.0
        try:
            self._server = _LivePageServer(port, self)
        except OSError as error:
            raise InputError(f"the live page cannot listen on port {port}: {error}; try another, or --port 0") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="blendctl-live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{HOST}:{self._server.port}/"

    def follow(self, title: str, poses: PoseRecorder) -> Callable[[Record], None]:
        """Follow a run; return the function to call with each of its records."""
        self._poses, self.scenery = poses, poses.scenery
        self._rows = LiveRows(self.objectives, title)
        verdict = "The blend is driving." if title == "blended" else f"Driving now, for comparison: {title}."
        self._send("headline", {"verdict": verdict, "scenery": self.scenery})

        def publish(record: Record) -> None:
            self._rows.add(record)
            if time.perf_counter() - self._sent > EVERY:
                self.catch_up()

        return publish

    def catch_up(self) -> None:
        """Send the records since the last message."""
        self._sent = time.perf_counter()
        if self._poses is None:
            return
        for rows in self._rows.take(self._poses.fresh()):
            episode = (rows["drive"], rows["episode"])
            if episode != self._episode:
                self._episode, self._episode_at = episode, self._dropped + len(self._messages)
                self._drop_old_messages()
            self._send("rows", rows)

    def close(self) -> None:
        """Send the end of the run, wait until open pages have fetched it, and stop; closing twice is allowed."""
        if self._over:
            return
        self.catch_up()
        self._send("end", {"verdict": "The run has ended. This page keeps what it has received."})
        with self._changed:
            self._over = True
            self._changed.notify_all()
        deadline = time.monotonic() + GRACE
        while self._readers and time.monotonic() < deadline:
            time.sleep(0.02)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def page(self) -> bytes:
        """Return the page without episodes, which arrive as events."""
        return page_html(LIVE_PAGE, self).encode()

    def _send(self, event: str, data: Any) -> None:
        message = f"event: {event}\ndata: {as_script_text(data)}\n\n"
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def _drop_old_messages(self) -> None:
        """Bound the memory of a long run: pages that connect late see it from the current episode on."""
        with self._changed:
            if sum(len(message) for message in self._messages) > LONGEST:
                old = self._episode_at - self._dropped
                self._messages = self._messages[old:]
                self._dropped += old

    def listen(self, after: int) -> tuple[list[tuple[int, str]], bool]:
        """Wait for messages after number `after`; return them with their numbers, and whether they are the last."""
        with self._changed:
            if self._dropped + len(self._messages) <= after and not self._over:
                self._changed.wait(KEEP_ALIVE)
            first = max(after, self._dropped)
            return list(enumerate(self._messages[first - self._dropped :], start=first + 1)), self._over

    def count_reader(self, change: int) -> None:
        """Change the number of listening pages."""
        with self._changed:
            self._readers += change


SECTIONS: tuple[Section[LiveView], ...] = (Section("replay", "Replay", lambda view: Replay(view.scenery)),)
LIVE_PAGE = Page("live", lambda view: Headline(view.world, "The run has not started yet."), SECTIONS)


class _LivePageServer(LoopbackServer):
    def __init__(self, port: int, view: LiveView) -> None:
        self.view = view
        super().__init__(port, _LivePageHandler)


class _LivePageHandler(LoopbackHandler):
    server: _LivePageServer
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """Send the page or its events."""
        if self.path == "/":
            self.send_body("text/html; charset=utf-8", self.server.view.page())
        elif self.path == "/events":
            self.send_head("text/event-stream; charset=utf-8", {"Connection": "close"})
            self._stream()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _stream(self) -> None:
        last_id = self.headers.get("Last-Event-ID") or ""
        view, last, over = self.server.view, int(last_id) if last_id.isdecimal() else 0, False
        view.count_reader(1)
        try:
            while not over:
                messages, over = view.listen(last)
                for last, message in messages:
                    self.wfile.write(f"id: {last}\n{message}".encode())
                if not messages:
                    self.wfile.write(b": keep-alive\n\n")
                self.wfile.flush()
        finally:
            view.count_reader(-1)
            self.close_connection = True
