"""Hostile peers on both ends of the wire: nothing is parsed beyond its limits, and one deadline holds per step."""

import gc
import os
import re
import socket
import struct
import threading
import time
from typing import Any

import msgpack
import numpy as np
import pytest

from blendctl.blender import Blender
from blendctl.controllers import remote as remote_module
from blendctl.controllers import server as server_module
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.remote import RemoteController
from blendctl.controllers.server import ControllerServer
from blendctl.controllers.wire import SMALLEST_LIMIT, Address, Channel, WireError, frame_limit, pack_array, unpack_frame
from blendctl.errors import BlendctlError
from blendctl.selftest.damage import damaged

INPUTS = max(300, int(os.environ.get("BLENDCTL_FUZZ", "0")))  # damaged requests
SOON = 20.0  # s, more than enough


def frame(message):
    body = msgpack.packb(message)
    return struct.pack(">I", len(body)) + body


class Peer:
    """A server that welcomes every client and then sends what it was told, once per request."""

    def __init__(self, *answers, action_size=2):
        self.answers, self.welcome = answers, {"protocol": 1, "name": "peer", "action_size": action_size}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    channel = Channel(connection)
                    channel.receive(until=time.monotonic() + SOON)
                    channel.send(self.welcome)
                    channel.limit = 1 << 20
                    for answer in self.answers:
                        request = channel.receive(until=time.monotonic() + SOON)
                        connection.sendall(answer(request["id"]) if callable(answer) else answer)
                except OSError:
                    continue

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


HOSTILE = {
    "many maps": frame({"x": [{}] * 100_000}),
    "nested lists": frame({"id": 1, "x": [[[]] * 30] * 30}),
    "announced": struct.pack(">I", 1 << 24),
    "not msgpack": struct.pack(">I", 3) + b"\xc1\xc1\xc1",
    "long list": frame({"id": 1, "x": list(range(33))}),
    "long text": frame({"id": 1, "x": "x" * (SMALLEST_LIMIT + 1)}),
    "never asked for": frame({"id": 77}) * 5000,
    "no id": frame({}) * 5000,
    "list as id": frame({"id": []}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_ends_the_connection(kind):
    with Peer(HOSTILE[kind]) as peer, RemoteController(peer.address, deadline=SOON) as there:
        with pytest.raises(WireError, match=r"lost the connection"):
            there.act(np.zeros(3))
        assert there._channel is None


def test_a_large_welcome_is_refused():
    with Peer() as peer:
        peer.welcome["name"] = "x" * SMALLEST_LIMIT
        with pytest.raises(WireError, match="announced"):
            RemoteController(peer.address)


def test_buffered_frames_do_not_outlast_the_deadline():
    left, right = socket.socketpair()
    with left, right:
        left.sendall(frame({"id": 1}) * 3)
        channel = Channel(right)
        assert channel.receive(until=time.monotonic() + SOON) == {"id": 1}
        with pytest.raises(TimeoutError):
            channel.receive(until=time.monotonic() - 1e-9)
        assert channel.receive() == {"id": 1}


def test_a_peer_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(remote_module, "MOST_UNANSWERED", 3)
    with Peer(b"", b"", b"", b"") as peer, RemoteController(peer.address, deadline=0.01) as there:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                there.act(np.zeros(3))
        old = there._channel
        there.deadline = SOON
        peer.answers = [lambda number: frame({"id": number, "action": pack_array([0.5, 0.0])})]
        old.socket.shutdown(socket.SHUT_RDWR)  # so that the peer, which serves one at a time, accepts again
        assert there.act(np.zeros(3)).tolist() == [0.5, 0.0]


def test_limits_follow_the_announced_sizes():
    assert frame_limit(2) == SMALLEST_LIMIT + (2 + 2) * 8 * 1024
    assert frame_limit(60, None) == frame_limit(10**7) == 16 << 20


def test_damaged_frames_raise_only_errors_of_the_wire():
    rng = np.random.default_rng(0)
    intact = msgpack.packb({"op": "act", "id": 7, "observation": pack_array(np.arange(3.0)), "seed": None})
    server = ControllerServer(as_controller(lambda o: o[:1]))
    try:
        for _ in range(INPUTS):
            try:
                message = unpack_frame(damaged(intact, rng))
            except BlendctlError:
                continue
            answer = server._answer(message)
            assert "action" in answer or isinstance(answer["error"], str)
            msgpack.packb(answer)
    finally:
        server.close()


def connected(server):
    return socket.create_connection((server.address.host, server.address.port))


def test_a_stranger_may_send_a_few_kilobytes_only():
    with ControllerServer(as_controller(lambda o: [0.0]), token="t") as server:
        server.start()
        with connected(server) as stranger:
            stranger.sendall(frame({"op": "hello", "protocol": 1, "token": "t" * SMALLEST_LIMIT}))
            stranger.settimeout(SOON)
            assert stranger.recv(1) == b""


@pytest.mark.parametrize("hello", [False, True])
def test_idle_connections_do_not_lock_others_out(monkeypatch, hello):
    monkeypatch.setattr(server_module, "IDLE_AFTER", 0.0)
    with ControllerServer(as_controller(lambda o: [0.0])) as server:
        server.start()
        idle = [connected(server) for _ in range(40)]
        if hello:
            for connection in idle:
                connection.sendall(frame({"op": "hello", "protocol": 1, "token": ""}))
        with RemoteController(str(server.address), deadline=SOON) as there:
            assert there.act(np.zeros(1)).tolist() == [0.0]
        for connection in idle:
            connection.close()


def test_one_host_gets_half_of_the_places():
    with ControllerServer(as_controller(lambda o: [0.0]), connections=4) as server:
        server.start()
        there = [RemoteController(str(server.address), deadline=SOON) for _ in range(2)]
        for client in there:
            client.act(np.zeros(1))
        with pytest.raises(WireError, match=r"closed|lost|reset"):
            RemoteController(str(server.address), deadline=SOON)
        for client in there:
            assert client.act(np.zeros(1)).tolist() == [0.0]
            client.close()


def test_a_server_is_warm_before_its_first_client():
    calls = []

    class Slow:
        observation_size, action_size = 3, 1

        def act(self, observation, rng=None):
            calls.append(observation.shape)
            return np.zeros(1)

        def reset(self):
            calls.append("reset")

    ControllerServer(Slow()).close()
    assert calls == [(3,), "reset"]


def test_whatever_a_served_controller_raises_is_an_answer():
    def leaves(observation):
        raise SystemExit(3)

    with ControllerServer(as_controller(leaves)) as server:
        server.start()
        with RemoteController(str(server.address), deadline=SOON) as there:
            for _ in range(2):
                with pytest.raises(WireError, match="SystemExit: 3"):
                    there.act(np.zeros(1))


@pytest.fixture
def served():
    servers: list[Any] = []
    clients: list[Any] = []

    def serve(controller, **options):
        servers.append(ControllerServer(as_controller(controller)).start())
        clients.append(RemoteController(str(servers[-1].address), **{"deadline": SOON} | options))
        return clients[-1]

    yield serve
    for thing in (*clients, *servers):
        thing.close()


def test_remote_controllers_are_asked_at_the_same_time(served):
    together = threading.Barrier(4)

    def meets(observation):
        together.wait(SOON)
        return [0.5, 0.0]

    team = [served(meets) for _ in range(4)]
    with Blender(team, features="one-hot", action_shape=(2,), seed=0) as blender:
        blender.act(np.zeros(3))
        assert blender.last.event is None
        assert all(action is not None for action in blender.last.proposals)


def test_the_deadline_of_a_blender_binds_remote_controllers(served):
    release = threading.Event()

    def hangs(observation):
        release.wait(SOON)
        return [0.5, 0.0]

    team = [served(hangs), lambda o: [0.1, 0.0]]
    with Blender(team, ["far", "near"], features="one-hot", action_shape=(2,), deadline=0.05, seed=0) as blender:
        assert blender.act(np.zeros(3)).tolist() == [0.1, 0.0]
        assert re.search(r"far (missed its deadline of 50 ms|raised TimeoutError)", blender.last.event)
        assert not release.is_set()
    release.set()


class Predictive:
    name, observation_size, action_size = "predictive", 3, 2

    def __init__(self):
        self.asked = []

    def act(self, observation, rng=None):
        self.asked.append("act")
        return np.array([0.5, 0.1])

    def predict(self, observation, action):
        self.asked.append("predict")
        return observation.sum() * action[0], action[1]


def test_predictions_come_with_the_action(served):
    near = Predictive()
    far = served(near)
    with Blender([far], features="predictions", seed=0) as blender:
        for step in range(4):
            blender.act(np.full(3, float(step)))
            blender.observe(reward=0.0, cost=0.0)
            assert blender.last.features[0] == pytest.approx([1.5 * step, -0.1])
        requests = far._id
    assert requests == 5  # one per step, and one for the first prediction


def test_one_deadline_counts_for_everything_in_a_step():
    now, hung = [0.0], threading.Event()

    def slow(observation):
        if observation[0] > 0:
            now[0] += 1.0
            hung.wait(SOON)
        return [0.5, 0.0]

    def other(observation):
        return [0.1, 0.0]

    options = {"features": "one-hot", "action_shape": (2,), "deadline": 0.5, "hold": 3, "clock": lambda: now[0]}
    with Blender([slow, other], seed=1, fallback="other", safe_action=[0.0, 0.0], **options) as blender:
        while blender.last is None or blender.last.name != "slow" or not blender.holding:
            blender.act(np.zeros(2))
            blender.observe(reward=0.0, cost=0.0)
        assert blender.act(np.ones(2)).tolist() == [0.0, 0.0]
        assert "other was not asked: the time of this step was over" in blender.last.event
        assert blender.drivers.bench.failures == [1, 0]
        hung.set()


def test_a_blender_that_is_dropped_leaves_no_thread():
    def names():
        return [thread.name for thread in threading.enumerate() if thread.name == "blendctl-forgotten"]

    blender = Blender([lambda o: [0.5]], ["forgotten"], features="one-hot", deadline=SOON, seed=0)
    blender.act(np.zeros(1))
    assert names()
    del blender
    gc.collect()
    end = time.monotonic() + SOON
    while names() and time.monotonic() < end:
        time.sleep(0.01)
    assert not names()


def test_a_name_that_begins_with_127_is_not_this_machine():
    for host, here in {
        "127.evil.example": False,
        "127.0.0.1": True,
        "127.3.2.1": True,
        "[::1]": True,
        "x": False,
    }.items():
        assert Address.parse(f"tcp://{host}:1").loopback is here


def test_a_socket_that_a_killed_server_left_behind_is_replaced(tmp_path):
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with ControllerServer(as_controller(lambda o: [0.0]), f"unix:{path}") as server:
        server.start()
        with RemoteController(f"unix:{path}", deadline=SOON) as there:
            assert there.act(np.zeros(1)).tolist() == [0.0]
        with pytest.raises(WireError, match="cannot listen"):
            ControllerServer(as_controller(lambda o: [0.0]), f"unix:{path}")
    (tmp_path / "file").write_text("not a socket")
    with pytest.raises(WireError, match="cannot listen"):
        ControllerServer(as_controller(lambda o: [0.0]), f"unix:{tmp_path}/file")


def test_an_answer_is_limited_by_its_request():
    """An unannounced size is no reason to read 16 MiB, and an error that is no text is not printed."""
    large = frame({"id": 1, "action": {"type": "|u1", "shape": [1 << 20], "data": b"x" * (1 << 20)}})
    with (
        Peer(large, action_size=None) as peer,
        RemoteController(peer.address, deadline=SOON) as there,
        pytest.raises(WireError, match="announced"),
    ):
        there.act(np.zeros(3))
    odd = frame({"id": 1, "error": b"x" * 100_000})
    with (
        Peer(odd, action_size=None) as peer,
        RemoteController(peer.address, deadline=SOON) as there,
        pytest.raises(WireError, match="does not say why"),
    ):
        there.act(np.zeros(3))


def test_a_late_answer_with_many_rows_is_still_read():
    batch = np.zeros((200, 3))
    answers = (
        b"",
        lambda n: frame({"id": n - 1, "action": pack_array(batch)}) + frame({"id": n, "action": pack_array([1.0])}),
    )
    with Peer(*answers, action_size=3) as peer, RemoteController(peer.address, deadline=0.05) as there:
        with pytest.raises(TimeoutError):
            there.act(batch)
        there.deadline = SOON
        assert there.act(batch[0]).tolist() == [1.0]


def test_closing_inside_an_admission_does_not_hang():
    """A signal handler closes the server at any instant."""
    server = ControllerServer(as_controller(lambda o: [0.0]))
    done = threading.Thread(target=lambda: (server._admission.acquire(), server.close()), daemon=True)
    done.start()
    done.join(timeout=SOON)
    assert not done.is_alive()


def test_a_peer_cannot_steer_the_terminal():
    steer = "\x1b[2J\x9b1m\r"
    with Peer(frame({"id": 1, "error": steer})) as peer:
        peer.welcome["name"] = steer
        with RemoteController(peer.address, deadline=SOON) as there, pytest.raises(WireError) as failed:
            there.act(np.zeros(3))
        assert there.name == "?[2J?1m?"
        assert str(failed.value).endswith("failed: ?[2J?1m?")
        peer.welcome = {"error": steer}
        with pytest.raises(WireError) as refused:
            RemoteController(peer.address)
        assert str(refused.value).endswith("refused: ?[2J?1m?")
