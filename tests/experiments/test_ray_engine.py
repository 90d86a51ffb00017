"""Ray: many machines, the same bits, and a node that dies is nothing but time lost."""

import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("ray")

from blendctl.errors import StateError
from blendctl.experiments import Store, Unit, run_units
from blendctl.experiments.protocol import Settings, plan

SQUARE = "small_units:square"
HEAD, OTHER = "127.0.0.2", "127.0.0.3"  # two machines for Ray; both are loopback


def store_in(path):
    return Store(path, "mixed", identity={})


def mixed_units(marks):
    """Two units that need both machines, then a chain and a pair of controllers of the real experiment."""
    settings = Settings(
        worlds={"PointGoal1": ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian")},
        data_points=2,
        episodes=2,
        steps=5,
    )
    both = [Unit(SQUARE, {"number": n, "doomed": OTHER, "marks": str(marks)}) for n in range(2)]
    return [*both, *plan(settings)[0][:4]]


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")
    from ray.cluster_utils import Cluster

    # a dead machine refuses connections at once, a slow one may take its time
    health = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 3,
        "health_check_timeout_ms": 20_000,
    }
    head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": HEAD, "_system_config": health}
    made = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


def pull_the_plug(node):
    """Kill all of a node at once, its workers too, as if its machine had lost power."""
    raylets = [info.process.pid for info in node.all_processes["raylet"]]
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat")]
    parents = {int(text.split()[0]): int(text.rpartition(")")[2].split()[1]) for text in stats}
    workers = [pid for pid, parent in parents.items() if parent in raylets]
    for pid in raylets + workers:
        os.kill(pid, signal.SIGKILL)


@contextmanager
def killed_when_at_work(cluster, node, marks):
    """Kill a node as soon as a unit is under way there."""
    over, killed = threading.Event(), []

    def watch():
        while not over.is_set() and not killed:
            if (marks / f"on-{OTHER}").exists():
                pull_the_plug(node)
                killed.append(node)
            over.wait(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert killed, "nothing ever ran on the other node"
    cluster.remove_node(node, allow_graceful=False)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")
def test_a_node_killed_mid_run_changes_nothing_of_the_result(cluster, tmp_path):
    node = cluster.add_node(num_cpus=1, node_ip_address=OTHER)
    units, events = mixed_units(tmp_path), []
    with killed_when_at_work(cluster, node, tmp_path):
        running = run_units(
            units,
            store=store_in(tmp_path / "ray"),
            engine="ray",
            address=cluster.address,
            progress=events.append,
        )
        results = {f.unit.key: f.result for f in running}
    assert "lost" in {event.state for event in events}
    here = {f.unit.key: f.result for f in run_units(units, store=store_in(tmp_path / "here"), engine="inline")}
    assert results.keys() == here.keys()
    assert all(results[key].same_as(here[key]) for key in here)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")
def test_a_lost_cluster_is_reported_and_finished_units_are_kept(cluster, tmp_path):
    units = [Unit(SQUARE, {"number": n, "seconds": 0.5}) for n in range(6)]
    running = run_units(units, store=store_in(tmp_path), engine="ray", address=cluster.address)
    first = next(running)
    cluster.shutdown()
    with pytest.raises(StateError, match=r"the Ray cluster at 127.0.0.2:\d+ .*was lost.* is kept"):
        list(running)
    assert store_in(tmp_path).get(first.unit) is not None


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_unreachable_cluster_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("blendctl.experiments.ray_engine.CONNECT_TIMEOUT", 3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    units = [Unit(SQUARE, {"number": 1})]
    with pytest.raises(StateError, match=r"the Ray cluster at 127.0.0.1:\d+ cannot be reached .* is kept"):
        list(run_units(units, store=store_in(tmp_path), engine="ray", address=address))
