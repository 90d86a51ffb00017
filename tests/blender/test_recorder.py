"""The record on disk: typed, readable by everyone, bounded in memory, and whole up to the last group."""

import json
import signal
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import pytest

from blendctl.blender import Blender, Recorder
from blendctl.blender.explain import explain_record, read_record
from blendctl.cli import main
from blendctl.errors import FileFormatError, InputError, StateError


def drive(blender, steps, *, start=0):
    for i in range(start, start + steps):
        action = blender.act(np.full(4, i / 1000))
        blender.observe(reward=action[0], cost=float(i % 3 == 0))


def read(path):
    return pyarrow.dataset.dataset(path, format="parquet").to_table()


def test_every_stage_is_a_row_with_all_its_numbers(make, tmp_path):
    blender = make("fast", "safe", record=tmp_path)
    kept = []
    for i in range(25):
        action = blender.act(np.zeros(4))
        blender.observe(reward=action[0], cost=float(i % 3 == 0), done=i == 9)
        kept.append(blender.last)
    blender.close()
    rows = read(tmp_path).to_pylist()
    assert len(rows) == 25
    for record, row in zip(kept, rows, strict=True):
        assert (row["stage"], row["step"], row["arm"], row["name"]) == (
            record.stage, record.step, record.arm, record.name,
        )  # fmt: skip
        decision = record.decision
        assert row["radius"] == decision.radius
        assert row["loss_bound"] == pytest.approx(record.loss_bound)
        for arm, name in enumerate(("fast", "safe")):
            assert row[f"psi_{name}_1"] == record.features[arm, 1]
            assert row[f"loss_{name}"] == decision.loss[arm]
            assert row[f"width_{name}"] == decision.width[arm]
            assert row[f"candidate_{name}"] == (arm in decision.candidates)
            assert row[f"ucb_{name}_reward"] == decision.ucb[arm, 0]
            assert row[f"estimate_{name}_minus_cost"] == decision.estimate[arm, 1]
            assert row[f"action_{name}_0"] == record.proposals[arm][0]
        assert [row["action_0"], row["action_1"]] == record.action.tolist()
        assert [row["feedback_reward"], row["feedback_minus_cost"]] == record.feedback.tolist()
        assert row["reason"] == (record.reason if record.switched else None)
    assert [row["episode"] for row in rows] == [0] * 10 + [1] * 15
    assert [row["ended"] for row in rows] == [i == 9 for i in range(25)]


def test_groups_have_one_schema_even_where_nothing_is_known(make, tmp_path, observation):
    def moody(observation):
        if observation[0] > 0:
            raise ValueError("boom")
        return [0.5, 0.0]

    blender = make(controllers=[moody], safe_action=[0.0, 0.0], record=Recorder(tmp_path, group=6), features="one-hot")
    for value in (0, 0, 0, 1, 1, 1, 0, 0):
        blender.act(np.full(4, float(value)))
    blender.close()
    schemas = [pyarrow.parquet.read_schema(part) for part in sorted(tmp_path.glob("*.parquet"))]
    assert len(schemas) == 3
    assert all(schema.equals(schemas[0]) for schema in schemas)
    table = read(tmp_path)
    assert table["arm"].to_pylist() == [0, 0, 0, -1, -1, -1, 0, 0]
    assert table["loss_moody"].to_pylist()[3:6] == [None] * 3
    assert table["feedback_reward"].null_count == 8  # none ever came
    assert "moody raised ValueError: boom" in table["event"].to_pylist()[3]


def test_pandas_polars_and_duckdb_read_it_as_one_table(make, tmp_path):
    blender = make("fast", "safe", record=Recorder(tmp_path, group=10))
    drive(blender, 25)
    blender.close()
    frame = pandas.read_parquet(tmp_path)
    assert len(frame) == 25
    assert frame["reward"].sum() == pytest.approx(sum(frame["action_0"]))
    names, rewards = frame["name"].tolist(), frame["reward"].tolist()
    other = polars.read_parquet(tmp_path / "*.parquet").sort("stage")
    assert (other["name"].to_list(), other["reward"].to_list()) == (names, rewards)
    rows = duckdb.sql(f"select name, reward from '{tmp_path}/*.parquet' order by stage").fetchall()
    assert rows == list(zip(names, rewards, strict=True))


def test_memory_is_bounded_by_groups(make, tmp_path, observation):
    recorder = Recorder(tmp_path, group=10)
    blender = make("fast", "safe", record=recorder)
    for _ in range(500):
        blender.act(observation)
        blender.observe(reward=0.1, cost=0.0)
        assert len(recorder._open) < 5
        assert recorder._full.qsize() <= 1
    blender.close()
    assert len(read(tmp_path)) == 500


def test_a_crash_loses_at_most_the_last_group(tmp_path):
    code = f"""
import os, signal
import numpy as np
from blendctl.blender import Blender, Recorder
blender = Blender([lambda o: [1.0], lambda o: [0.1]], ["a", "b"], features="one-hot", seed=0,
                  record=Recorder({str(tmp_path / "record")!r}, group=100))
for i in range(1055):  # as fast as it can, so that the disk is behind
    blender.act(np.zeros(2))
    blender.observe(reward=0.1, cost=0.0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = subprocess.run([sys.executable, "-c", code], check=False)
    assert process.returncode == -signal.SIGKILL
    stages = read(tmp_path / "record")["stage"].to_pylist()
    assert 955 <= len(stages) <= 1055
    assert stages == list(range(1, len(stages) + 1))


def test_a_stage_whose_feedback_came_late_has_a_second_row(make, tmp_path, observation):
    blender = make("fast", "safe", record=tmp_path)
    for _ in range(3):
        blender.act(observation)
    blender.observe(reward=0.7, cost=0.0, stage=2)
    blender.close()
    rows = read(tmp_path).to_pylist()
    assert [(row["stage"], row["late"], row["learned"]) for row in rows] == [
        (1, False, False), (2, False, False), (2, True, True), (3, False, False),
    ]  # fmt: skip
    assert rows[2]["feedback_reward"] == 0.7
    assert read_record(tmp_path, step=2).learned


def test_a_stage_with_late_feedback_keeps_its_event(tmp_path, observation):
    calls = []

    def moody(o):
        calls.append(o)
        if len(calls) == 2:
            raise RuntimeError("not today")
        return [0.1]

    blender = Blender([moody, lambda o: [0.2]], ["moody", "safe"], features="one-hot", record=tmp_path, seed=0)
    for _ in range(3):
        blender.act(observation)
    blender.observe(reward=0.7, cost=0.0, stage=2)
    blender.close()
    record = read_record(tmp_path, step=2)
    assert record.learned
    assert "not today" in record.event
    assert "not today" in record.reason


def test_a_disk_that_fails_does_not_stop_the_drive(make, tmp_path, observation):
    recorder = Recorder(tmp_path / "record", group=5)
    blender = make("fast", "safe", record=recorder)
    (tmp_path / "record").rmdir()
    (tmp_path / "record").write_text("in the way")
    for _ in range(30):
        blender.act(observation)
        blender.observe(reward=0.1, cost=0.0)
    with pytest.raises(OSError, match="record"):
        blender.close()


def test_an_impatient_recorder_drops_groups_rather_than_wait_for_the_disk(make, tmp_path, observation):
    recorder = Recorder(tmp_path, group=5, patient=False)
    gate = threading.Event()
    write = recorder._write
    recorder._write = lambda group: gate.wait(20) and write(group)
    blender = make("fast", "safe", record=recorder)
    for _ in range(100):
        blender.act(observation)
        blender.observe(reward=0.1, cost=0.0)
    gate.set()
    with pytest.raises(StateError, match=r"could not keep up: .* stages are missing"):
        blender.close()
    assert 0 < len(read(tmp_path)) < 100


def test_a_record_is_not_overwritten_by_accident(make, tmp_path):
    blender = make("fast", "safe", record=tmp_path)
    drive(blender, 3)
    blender.close()
    with pytest.raises(InputError, match="holds a record already"):
        Recorder(tmp_path)
    Recorder(tmp_path, overwrite=True)
    assert not list(tmp_path.glob("*.parquet"))
    with pytest.raises(InputError, match="group"):
        Recorder(tmp_path, group=0)


def test_one_decision_is_explained_as_it_was(make, tmp_path):
    blender = make("fast", "safe", "third", record=Recorder(tmp_path, group=7), scales=[1.0, 2.0])
    reasons = {}
    for i in range(20):
        action = blender.act(np.zeros(4))
        blender.observe(reward=action[0], cost=float(action[0] > 0.6))
        reasons[i + 1] = blender.last.reason
    blender.close()
    for step in (1, 8, 20):
        record = read_record(tmp_path, step=step)
        assert record.reason == reasons[step]
        text = explain_record(record)
        assert reasons[step] in text
        assert f"stage {step}" in text
        assert "third proposed [0.5, 0]" in text
        assert "feedback: reward" in text


def test_the_explanation_keeps_to_the_unit_of_the_feedback(make, tmp_path, capsys):
    blender = make("fast", "safe", record=tmp_path, scales=[1.0, 4.0], features="one-hot")
    for _ in range(12):
        action = blender.act(np.zeros(4))
        blender.observe(reward=action[0], cost=8.0 * float(action[0] > 0.6))
    blender.close()
    record = read_record(tmp_path, step=12)
    text, decision = explain_record(record), record.decision
    assert (
        "unit: reward and cost of one control step; a loss is that of the worst objective, in units of reward" in text
    )
    assert "a reward of 1 counts as much as a cost of 4" in text
    for row, name in enumerate(("fast", "safe")):
        (reward, cost), (high, low) = decision.estimate[row], decision.ucb[row]
        numbers = f"reward {reward:.4g} (at best {high:.4g}), cost {-4 * cost + 0.0:.4g} (at best {-4 * low:.4g})"
        assert f"  {name}: expected {numbers}; loss {decision.loss[row]:.4g}" in text
    word, value = text.split("feedback: reward ")[1].split("; ")[0].split(", cost ")
    assert (float(word), float(value)) == (pytest.approx(record.reward, abs=1e-3), record.cost)
    with pytest.raises(SystemExit):
        main(["explain", str(tmp_path), "--step", "12", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["unit"] in text
    assert facts["arms"]["fast"]["estimate"]["-cost"] == pytest.approx(4 * decision.estimate[0, 1])
    assert facts["feedback"]["-cost"] == -record.cost


def test_missing_records_are_reported(make, tmp_path):
    with pytest.raises(FileFormatError, match="holds no record"):
        read_record(tmp_path, step=1)
    blender = make("fast", "safe", record=tmp_path)
    drive(blender, 3)
    blender.close()
    with pytest.raises(InputError, match="steps 1 to 3, actually asked for: 9"):
        read_record(tmp_path, step=9)
    (tmp_path / "part-000002.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(FileFormatError, match="damaged"):
        read_record(tmp_path, step=1)


def test_actions_that_are_single_numbers_are_explained(tmp_path):
    with Blender([lambda o: 0, lambda o: 1], ["0", "1"], features="one-hot", record=tmp_path, seed=0) as blender:
        action = blender.act(np.zeros(2))
        blender.observe(reward=1.0, cost=0.0)
    text = explain_record(read_record(tmp_path, step=1))
    assert "0 proposed [0]" in text
    assert "1 proposed [1]" in text
    assert f"applied: [{action}]" in text


def test_objectives_that_would_share_a_column_get_one_each(tmp_path):
    goals = ["-cost", ("minus cost", lambda feedback: 5.0)]
    with Blender([lambda o: [0.0]], objectives=goals, features="one-hot", record=tmp_path, seed=0) as blender:
        blender.act(np.zeros(2))
        blender.observe(cost=1.0)
    row = read(tmp_path).to_pylist()[0]
    assert (row["feedback_minus_cost_0"], row["feedback_minus_cost_1"]) == (-1.0, 5.0)
