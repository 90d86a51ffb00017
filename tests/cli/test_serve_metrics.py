"""A served blend reports how it goes, in the text format of Prometheus."""

import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest
from short_drive import blend_to

from blendctl import Blender, loopback_server
from blendctl.blender import prometheus_text
from blendctl.cli.metrics_server import metrics_server
from blendctl.controllers import RemoteController
from blendctl.errors import InputError

LINE = re.compile(r'blendctl_\w+(\{\w+="(\\.|[^"\\])*"\})? -?[\d.e+-]+')


def values(text):
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in lines), text
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_the_status_of_a_blender_is_counted():
    blender = Blender([lambda o: [1.0], lambda o: [np.nan]], ["good", 'bad "one"'], features="one-hot", seed=0)
    for _ in range(5):
        blender.act(np.zeros(2))
        blender.observe(0.1, 0.0)
    found = values(prometheus_text(blender.status()))
    assert found["blendctl_steps_total"] == found["blendctl_stages_total"] == 5
    assert found['blendctl_driven_total{controller="good"}'] == 5
    assert 0 < found['blendctl_act_seconds{quantile="0.5"}'] <= found['blendctl_act_seconds{quantile="0.999"}']
    assert found['blendctl_observed_feedback{objective="reward"}'] == pytest.approx(0.1)
    assert found["blendctl_drift_alarm"] == found["blendctl_surprises_total"] == 0
    assert 'controller="bad \\"one\\""' in prometheus_text(blender.status())


@pytest.fixture
def serving(tmp_path):
    """A process that serves a small blend; its address and the page of its metrics."""
    folder = blend_to(tmp_path / "run", "--no-alone", "--no-counterfactual", episodes=1, steps=30)
    command = [sys.executable, "-m", "blendctl", "serve", str(folder), "--metrics", "0"]
    environment = os.environ | {"BLENDCTL_TOKEN": "secret", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    url = re.search(r"http\S+", process.stdout.readline())[0]
    address = re.search(r"tcp://\S+", process.stdout.readline())[0]
    yield address, url
    process.terminate()
    process.wait(timeout=20)
    process.stdout.close()


def test_a_saved_blend_is_served_with_metrics(serving):
    address, url = serving
    with RemoteController(address, token="secret", deadline=20.0) as remote:
        for _ in range(3):
            assert remote.act(np.zeros(60)).shape == (2,)
    found = values(urllib.request.urlopen(url).read().decode())
    assert found["blendctl_requests_total"] == 3
    assert found['blendctl_driven_total{controller="bold"}'] + found['blendctl_driven_total{controller="wary"}'] >= 3
    assert found["blendctl_learned_total"] == 0
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url.replace("metrics", "other"))


@pytest.fixture
def metrics():
    with metrics_server(lambda: "blendctl_steps_total 3\n", 0) as url:
        yield url


def test_idle_connections_do_not_lock_a_scrape_out(metrics):
    port = int(re.search(r":(\d+)/", metrics)[1])
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(2 * loopback_server.MOST_CONNECTIONS)]
    assert urllib.request.urlopen(metrics, timeout=20).read() == b"blendctl_steps_total 3\n"
    assert threading.active_count() < 1.5 * loopback_server.MOST_CONNECTIONS
    for connection in idle:
        connection.close()


@pytest.mark.parametrize("header", ["evil.example", None])
def test_pages_of_other_hosts_cannot_read_metrics(metrics, header):
    request = urllib.request.Request(metrics, headers={"Host": header or "localhost:1"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)


def test_a_status_that_fails_is_an_answer():
    def text():
        raise RuntimeError("dictionary changed size during iteration")

    with metrics_server(text, 0) as url, pytest.raises(urllib.error.HTTPError, match="500"):
        urllib.request.urlopen(url)


def test_metrics_on_a_taken_port_are_refused(metrics):
    port = int(re.search(r":(\d+)/", metrics)[1])
    with pytest.raises(InputError, match="cannot be served on port"), metrics_server(str, port):
        pass
