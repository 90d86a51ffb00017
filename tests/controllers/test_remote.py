"""Remote controllers: deadlines, tokens, and broken or hostile peers."""

import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from blendctl.blender import Blender
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.base import can_predict
from blendctl.controllers.remote import RemoteController
from blendctl.controllers.resolve import open_controller
from blendctl.controllers.server import ControllerServer
from blendctl.controllers.wire import LARGEST_FRAME, Address, Channel, WireError, pack_array, unpack_array
from blendctl.errors import InputError


class Predictive:
    name, observation_size, action_size = "predictive", 3, 2

    def act(self, observation, rng=None):
        noise = 0.0 if rng is None else rng.normal()
        return np.array([observation.sum() + noise, 1.0])

    def predict(self, observation, action):
        return observation.sum() * action[0], action[1]


@pytest.fixture
def serve(request):
    servers = []

    def start(controller, address="tcp://127.0.0.1:0", **options):
        servers.append(ControllerServer(controller, address, **options).start())
        return servers[-1], str(servers[-1].address)

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_it_acts_and_predicts_as_the_local_controller(serve, tmp_path, kind):
    here = Predictive()
    _, address = serve(here, "tcp://127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/c.sock", token="open sesame")
    with RemoteController(address, token="open sesame", deadline=10.0) as there:
        assert (there.name, there.observation_size, there.action_size) == ("predictive", 3, 2)
        observation = np.array([0.1, 0.2, 0.4])
        assert np.array_equal(there.act(observation), here.act(observation))
        reward, cost = there.predict(observation, [2.0, 3.0])
        assert (float(reward), float(cost)) == (pytest.approx(1.4), 3.0)
        draws = [there.act(observation, np.random.default_rng(5)) for _ in range(2)]
        assert np.array_equal(*draws)
        assert not np.array_equal(draws[0], there.act(observation, np.random.default_rng(6)))
        assert can_predict(there)


def test_a_black_box_does_not_claim_to_predict(serve):
    _, address = serve(as_controller(lambda o: [0.0, 1.0]))
    with RemoteController(address, deadline=10.0) as there:
        assert not can_predict(there)
        assert there.act(np.zeros(3)).tolist() == [0.0, 1.0]


def test_a_controller_is_opened_with_a_deadline_and_ends_earlier_if_a_step_must(serve):
    _, address = serve(Predictive())
    opened: Any = open_controller(address, deadline=30.0)
    with opened as there:
        assert there.deadline == 30.0
        there.end_calls_by(time.monotonic())
        with pytest.raises(TimeoutError):
            there.act(np.zeros(3))
        there.end_calls_by(np.inf)
        assert there.act(np.zeros(3)).tolist() == [0.0, 1.0]


def test_a_wrong_token_is_refused(serve):
    _, address = serve(Predictive(), token="right")
    for token in ("", "wrong"):
        with pytest.raises(WireError, match="wrong token"):
            RemoteController(address, token=token)


def test_an_address_for_other_machines_needs_a_token():
    with pytest.raises(InputError, match="only with a token"):
        ControllerServer(Predictive(), "tcp://0.0.0.0:0")
    ControllerServer(Predictive(), "tcp://0.0.0.0:0", token="t").close()


def test_an_address_in_use_is_refused(tmp_path):
    for address in (f"unix:{tmp_path}/a.sock", "tcp://127.0.0.1:0"):
        with ControllerServer(as_controller(lambda o: [0.0]), address) as server:
            taken = str(server.address)
            with pytest.raises(WireError, match=f"cannot listen at {taken}"):
                ControllerServer(as_controller(lambda o: [0.0]), taken)


def test_a_late_answer_is_not_taken_for_a_later_one(serve):
    release = threading.Event()

    def slow(observation):
        if observation[0] == 1:
            release.wait(20)
        return observation

    _, address = serve(as_controller(slow))
    with RemoteController(address, deadline=0.2) as there:
        assert there.act(np.array([0.0])).tolist() == [0.0]
        with pytest.raises(TimeoutError, match="within 200 ms"):
            there.act(np.array([1.0]))
        release.set()
        there.deadline = 20.0
        assert there.act(np.array([2.0])).tolist() == [2.0]


def test_errors_of_the_controller_are_raised_by_the_client(serve):
    def fails(observation):
        raise ZeroDivisionError("of course")

    _, address = serve(as_controller(fails))
    with RemoteController(address, deadline=10.0) as there:
        for _ in range(2):
            with pytest.raises(WireError, match="ZeroDivisionError: of course"):
                there.act(np.zeros(2))


def test_it_connects_again_after_a_loss(serve, tmp_path):
    address = f"unix:{tmp_path}/c.sock"
    first, _ = serve(Predictive(), address)
    there = RemoteController(address, deadline=5.0)
    there.act(np.zeros(3))
    first.close()
    for _ in range(2):
        with pytest.raises(WireError, match=r"lost|reached"):
            there.act(np.zeros(3))
    serve(Predictive(), address)
    assert there.act(np.zeros(3)).tolist() == [0.0, 1.0]
    there.close()


def test_a_blender_drives_on_when_a_remote_controller_dies(serve, tmp_path):
    address = f"unix:{tmp_path}/c.sock"
    server, _ = serve(Predictive(), address)
    remote = RemoteController(address, deadline=5.0)
    blender = Blender([remote, lambda o: [0.5, 0.5]], ["far", "near"], features="one-hot", fallback="near", seed=0)
    for step in range(40):
        if step == 10:
            server.close()
        assert np.isfinite(blender.act(np.zeros(3))).all()
        blender.observe(reward=0.1, cost=0.0)
    assert blender.last.name == "near"
    assert not blender.fit("far")
    remote.close()


def test_malformed_frames_do_not_stop_the_server(serve):
    server, address = serve(Predictive(), token="t")
    host = Address.parse(address)
    for malformed in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x01\xc1",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01\x01",
        b"",
    ):
        with socket.create_connection((host.host, host.port)) as connection:
            connection.sendall(malformed)
    with socket.create_connection((host.host, host.port)) as connection:
        channel = Channel(connection)
        channel.send({"op": "hello", "protocol": 99, "token": "t"})
        assert "protocol 1" in channel.receive(until=time.monotonic() + 20)["error"]
    with socket.create_connection((host.host, host.port)) as connection:
        channel = Channel(connection)
        channel.send({"op": "hello", "protocol": 1, "token": "t"})
        channel.receive(until=time.monotonic() + 20)
        for question in (
            {"op": "act", "id": 1},
            {"op": "act", "id": 1, "observation": {"type": "|O", "shape": [1], "data": b"x"}},
            {"op": "act", "id": 1, "observation": {"type": "<f8", "shape": [3], "data": b"short"}},
            {"op": "act", "id": 1, "observation": pack_array([0.0] * 3), "seed": -1},
            {"op": "destroy", "id": 1, "observation": pack_array([0.0] * 3)},
        ):
            channel.send(question)
            assert "error" in channel.receive(until=time.monotonic() + 20)
    with RemoteController(address, token="t", deadline=10.0) as there:
        assert there.act(np.zeros(3)).tolist() == [0.0, 1.0]
    del server


@pytest.mark.parametrize("size", [-1, 0, 10**9, True, 2.0, "2", [2]])
def test_a_server_that_announces_a_wrong_size_is_refused(size):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pretend():
            connection, _ = listener.accept()
            with connection:
                channel = Channel(connection)
                channel.receive(until=time.monotonic() + 20)
                channel.send({"protocol": 1, "name": "pretender", "action_size": size})

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(WireError, match="announces action_size"):
            RemoteController(f"tcp://127.0.0.1:{listener.getsockname()[1]}", deadline=20.0)
        thread.join()


@pytest.mark.parametrize("answer", [{"id": 1}, {"id": 1, "action": {"type": "<f8", "shape": [np.inf], "data": b""}}])
def test_an_answer_without_an_action_is_an_error_of_the_wire(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pretend():
            connection, _ = listener.accept()
            with connection:
                channel = Channel(connection)
                channel.receive(until=time.monotonic() + 20)
                channel.send({"protocol": 1, "name": "pretender"})
                channel.receive(until=time.monotonic() + 20)
                channel.send(answer)

        thread = threading.Thread(target=pretend)
        thread.start()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with RemoteController(address, deadline=20.0) as there:
            assert there.name == "pretender"
            with pytest.raises(WireError, match="an array was expected"):
                there.act(np.zeros(3))
        thread.join()


def test_arrays_survive_the_wire():
    for array in (
        np.arange(6.0).reshape(2, 3),
        np.float32(3.5),
        np.array([True, False]),
        np.zeros((0, 4)),
        np.arange(3)[::-1],
    ):
        back = unpack_array(pack_array(array))
        assert np.array_equal(back, array)
        assert back.shape == np.shape(array)
    with pytest.raises(WireError, match="cannot be sent"):
        pack_array(["text"])
    left, right = socket.socketpair()
    with left, right, pytest.raises(WireError, match="too long"):
        Channel(left).send({"data": bytes(LARGEST_FRAME + 1)})


@pytest.mark.parametrize("text", ["127.0.0.1:80", "tcp://host", "tcp://host:port", "unix:", "http://x:1"])
def test_malformed_addresses_are_refused(text):
    with pytest.raises(InputError, match="tcp://HOST:PORT"):
        Address.parse(text)


def test_an_unreachable_address_is_reported(tmp_path):
    with pytest.raises(WireError, match="cannot be reached"):
        RemoteController(f"unix:{tmp_path}/nobody.sock")
    with pytest.raises(InputError, match="deadline"):
        RemoteController("tcp://127.0.0.1:1", deadline=0.0)


def test_the_command_serves_another_process(tmp_path):
    environment = os.environ | {"BLENDCTL_TOKEN": "secret"}
    options = ["serve", "stop", "--world", "PointGoal1", "--address", f"unix:{tmp_path}/s"]
    command = [sys.executable, "-m", "blendctl", *options]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == f"serving stop at unix:{tmp_path}/s\n"
        with RemoteController(f"unix:{tmp_path}/s", token="secret", deadline=20.0) as there:
            assert there.name == "stop"
            assert there.act(np.zeros(60)).tolist() == [0.0, 0.0]
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()
    assert not (tmp_path / "s").exists()
