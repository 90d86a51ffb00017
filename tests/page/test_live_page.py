"""The live page in headless Chromium: it fills during the run, and keeps its data afterwards."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
from chromium import Page

from blendctl.blender import Blender, run
from blendctl.controllers.classical import classical
from blendctl.envs import SingleWorld
from blendctl.envs.pose_recorder import PoseRecorder
from blendctl.errors import InputError
from blendctl.reports.live import LiveView


@pytest.fixture
def view():
    opened = LiveView("PointGoal1", ["bold", "wary"], objectives=["reward", "-cost"])
    yield opened
    opened.close()


@pytest.fixture
def blender():
    pair = [classical("pure-pursuit", "PointGoal1"), classical("potential-field", "PointGoal1")]
    with Blender(pair, ["bold", "wary"], fallback="wary", seed=0) as made:
        yield made


def read_events(view, count):
    """Return the first events of the stream."""
    messages, event = [], None
    with urllib.request.urlopen(f"{view.url}events", timeout=60) as stream:
        for line in stream:
            word, _, rest = line.decode().partition(": ")
            if word == "event":
                event = rest.strip()
            elif word == "data":
                messages.append((event, json.loads(rest)))
                if len(messages) == count:
                    break
    return messages


def test_the_page_follows_the_run_and_keeps_its_data(page, view, blender, screenshots):
    page.open(view.url)
    tracker = PoseRecorder(SingleWorld("PointGoal1", max_episode_steps=60), live=True)
    publish = view.follow("blended", tracker)
    records, states = [], []
    for record in run(tracker, blender, episodes=2, seed=8):
        records.append(record)
        publish(record)
        if len(records) in (30, 90):
            view.catch_up()
            page.wait(f"blendctl.state().step === 30 && blendctl.episodes.length === {1 + len(records) // 60}")
            states.append(page.run("blendctl.state()"))
    view.catch_up()
    for state, rows in zip(states, (records[:30], records[60:90]), strict=True):
        assert state["return"] == pytest.approx(sum(record.reward for record in rows), abs=1e-5)
        assert state["cost"] == sum(record.cost for record in rows)
        assert state["arm"] == rows[-1].arm
        assert state["reason"] == rows[-1].reason
    page.wait("blendctl.state().step === 60")
    page.run(  # in one call, as by hand: rows that arrive in between would update the list
        "(() => { const list = document.querySelector('#episode'); list.value = '0';"
        "list.dispatchEvent(new Event('change')); })()"
    )
    page.press("End")
    assert page.run("blendctl.state()")["return"] == pytest.approx(sum(r.reward for r in records[:60]), abs=1e-5)
    view.close()
    page.wait("document.querySelector('#verdict').textContent.startsWith('The run has ended')")
    page.press("ArrowLeft")
    page.settle()
    assert page.run("blendctl.state().step") == 59
    page.screenshot(screenshots / "live.png", whole=True)
    assert set(page.requests()) == {view.url, f"{view.url}events"}
    tracker.close()


def test_a_page_that_connects_late_receives_everything(view, blender):
    tracker = PoseRecorder(SingleWorld("PointGoal1", max_episode_steps=20), live=True)
    publish = view.follow("blended", tracker)
    records = [record for record in run(tracker, blender, episodes=1, seed=0) if publish(record) is None]
    view.catch_up()
    events = read_events(view, 2)
    while sum(len(data["rewards"]) for event, data in events if event == "rows") < 20:
        events = read_events(view, len(events) + 1)
    assert events[0][0] == "headline"
    assert events[0][1]["scenery"]["robot"]["name"] == "Point"
    rows = [data for event, data in events if event == "rows"]
    rewards = [reward for row in rows for reward in row["rewards"]]
    assert rewards == pytest.approx([record.reward for record in records])
    assert sum(len(row["poses"].get("x", [])) for row in rows) == 21
    assert [arm for row in rows for arm in row["stages"].get("arm", [])] == [record.arm for record in records]
    tracker.close()


def test_a_long_run_does_not_fill_the_memory(view, blender, monkeypatch):
    monkeypatch.setattr("blendctl.reports.live.LONGEST", 1)
    tracker = PoseRecorder(SingleWorld("PointGoal1", max_episode_steps=15), live=True)
    publish = view.follow("blended", tracker)
    for record in run(tracker, blender, episodes=3, seed=0):
        publish(record)
        view.catch_up()
    first = read_events(view, 1)[0][1]
    assert first["episode"] == 2  # only the current one is kept
    tracker.close()


def test_other_hosts_and_paths_are_refused(view):
    assert view.url.startswith("http://127.0.0.1:")
    request = urllib.request.Request(view.url, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=60)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{view.url}etc/passwd", timeout=60)


def test_a_port_in_use_is_named(view):
    port = int(view.url.rstrip("/").rsplit(":", 1)[1])
    with pytest.raises(InputError, match=f"cannot listen on port {port}"):
        LiveView("PointGoal1", ["bold"], objectives=["reward"], port=port)


def test_unknown_estimates_and_names_with_html_are_shown(browser, tmp_path):
    names = ["<b>bold</b>", "</script>"]
    view = LiveView("PointGoal1", names, objectives=["reward", "-cost"])
    with Blender([lambda o: np.ones(2), lambda o: -np.ones(2)], names, fallback=names[1], seed=0) as blender:
        page = Page(browser)
        page.open(view.url)
        tracker = PoseRecorder(SingleWorld("PointGoal1", max_episode_steps=10), live=True)
        publish = view.follow("blended", tracker)
        for record in run(tracker, blender, episodes=1, seed=0):
            publish(record)
        view.catch_up()
        page.wait("blendctl.state().step === 10")
        page.settle()
        assert page.run("document.querySelector('.who b').textContent") in names
        assert page.complaints() == []
        page.close()
        tracker.close()
    view.close()
