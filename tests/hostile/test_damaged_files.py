"""Whatever a damaged or hostile file causes is an error of blendctl that names the file; nothing hangs or swells."""

import io
import json
import os
import pickle
import resource
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from mutations import damaged, odd_json
from safetensors import safe_open
from safetensors.numpy import save

from blendctl.blender import Blender, Recorder
from blendctl.blender.explain import read_record
from blendctl.controllers import load, read_controller, write_controller
from blendctl.controllers.checkpoints import read_omnisafe, read_sb3
from blendctl.controllers.torch_zip import read_torch_zip
from blendctl.controllers.zoo import find_controller_file
from blendctl.envs.recordings import load_recording
from blendctl.errors import BlendctlError, FileFormatError
from blendctl.experiments.store import decode
from blendctl.reports import build_report
from blendctl.table_parts import read_table

INPUTS = int(os.environ.get("BLENDCTL_FUZZ", "150"))  # damaged files per reader
CORPUS = Path(__file__).parents[1] / "corpus"
RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """One intact file of every kind."""
    folder = tmp_path_factory.mktemp("samples")
    small = {"pi": {"mean.0.weight": torch.ones(3, 2), "mean.0.bias": torch.ones(3), "log_std": torch.zeros(3)}}
    small["obs_normalizer"] = {"_mean": torch.zeros(2), "_std": torch.ones(2), "_count": torch.tensor(9)}
    small["obs_normalizer"]["_clip"] = torch.tensor(5.0)
    torch.save(small, folder / "omnisafe.pt")
    buffer = io.BytesIO()
    policy = {"mlp_extractor.policy_net.0": (4, 2), "action_net": (3, 4)}
    weights = {f"{name}.weight": torch.ones(*shape) for name, shape in policy.items()}
    weights |= {f"{name}.bias": torch.ones(shape[0]) for name, shape in policy.items()}
    torch.save(weights | {"log_std": torch.zeros(3)}, buffer)
    with zipfile.ZipFile(folder / "sb3.zip", "w") as archive:
        archive.writestr("policy.pth", buffer.getvalue())
        archive.writestr("data", json.dumps({"policy_kwargs": {"activation_fn": "torch.nn.modules.activation.ReLU"}}))
    blender = Blender(
        [lambda o: [0.5, 0.1], lambda o: [0.1, 0.2]], ["fast", "safe"], features="one-hot", seed=0,
        record=Recorder(folder / "run" / "record"),
    )  # fmt: skip
    for step in range(40):
        blender.act(np.zeros(2))
        blender.observe(reward=0.1, cost=0.0, done=step % 20 == 19)
    blender.close()
    blender.save(folder / "bandit.safetensors")
    shutil.copy(find_controller_file("PointGoal1/ppo"), folder / "controller.safetensors")
    write_controller(load("PointGoal1/ppo"), folder / "controller.safetensors")
    for suffix in (".npz", ".json"):
        shutil.copy(RECORDINGS / f"SafetyPointGoal0-v0{suffix}", folder)
    (folder / "run" / "run.json").write_text(json.dumps({"experiment": "blend", "names": ["fast", "safe"], "seed": 0}))
    return folder


READERS = {
    "controller.safetensors": read_controller,
    "bandit.safetensors": lambda path: Blender(
        [lambda o: [0.5, 0.1], lambda o: [0.1, 0.2]], ["fast", "safe"], features="one-hot", bandit=path
    ),
    "omnisafe.pt": read_omnisafe,
    "sb3.zip": read_sb3,
    "SafetyPointGoal0-v0.npz": load_recording,
    "SafetyPointGoal0-v0.json": lambda path: load_recording(path.with_suffix(".npz")),
    "run/record/part-000001.parquet": lambda path: read_record(path.parent, step=3),
    "run/run.json": lambda path: build_report(path.parent),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_bytes_raise_only_errors_of_blendctl(samples, tmp_path, name):
    rng = np.random.default_rng(sum(name.encode()))
    folder = tmp_path / "work"
    shutil.copytree(samples, folder)
    path, intact, refused = folder / name, (samples / name).read_bytes(), 0
    inputs = INPUTS // 5 if name == "run/run.json" else INPUTS  # a page is built for each of them
    for number in range(inputs):
        if name.endswith(".json") and number % 2:
            path.write_text(odd_json(intact.decode(), rng))
        else:
            path.write_bytes(damaged(intact, rng))
        try:
            READERS[name](path)
        except BlendctlError:
            refused += 1
        except BaseException as error:
            error.add_note(f"input {number} of {name}")
            raise
    assert refused > inputs // 10


@pytest.mark.parametrize("name", ["controller.safetensors", "run/record/part-000001.parquet"])
def test_odd_values_in_a_header_raise_only_errors_of_blendctl(samples, tmp_path, name):
    rng = np.random.default_rng(1)
    folder = tmp_path / "work"
    shutil.copytree(samples, folder)
    path = folder / name
    if path.suffix == ".safetensors":
        with safe_open(path, framework="numpy") as file:
            header, tensors = file.metadata()["blendctl"], {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        header = json.dumps({key: value for key, value in json.loads(header).items() if key != "digest"})
    else:
        table = pyarrow.parquet.read_table(path)
        header = table.schema.metadata[b"blendctl-record"].decode()
    for number in range(INPUTS):
        changed = odd_json(header, rng)
        if path.suffix == ".safetensors":
            path.write_bytes(save(tensors, metadata={"blendctl": changed}))
        else:
            pyarrow.parquet.write_table(table.replace_schema_metadata({"blendctl-record": changed}), path)
        try:
            READERS[name](path)
        except BlendctlError:
            continue
        except BaseException as error:
            error.add_note(f"input {number} of {name}: {changed[:2000]}")
            raise


def test_one_changed_bit_of_a_controller_is_noticed(samples, tmp_path):
    rng = np.random.default_rng(0)
    intact = (samples / "controller.safetensors").read_bytes()
    read_controller(samples / "controller.safetensors")
    start = 8 + int.from_bytes(intact[:8], "little")  # of the tensors
    for _ in range(100):
        changed = bytearray(intact)
        changed[int(rng.integers(start, len(intact)))] ^= 1 << int(rng.integers(8))
        (tmp_path / "c.safetensors").write_bytes(changed)
        with pytest.raises(FileFormatError, match=r"digest does not match|not finite"):
            read_controller(tmp_path / "c.safetensors")


def test_a_controller_file_without_a_digest_is_still_read(samples, tmp_path):
    with safe_open(samples / "controller.safetensors", framework="numpy") as file:
        header, tensors = json.loads(file.metadata()["blendctl"]), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    del header["digest"]
    (tmp_path / "old.safetensors").write_bytes(save(tensors, metadata={"blendctl": json.dumps(header)}))
    assert read_controller(tmp_path / "old.safetensors").digest == load("PointGoal1/ppo").digest


def grown():
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def checkpoint(program, storages=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", program)
        for key, size in storages:
            archive.writestr(f"archive/data/{key}", bytes(size))
    return buffer.getvalue()


def tensor_program(shape, strides, size):
    numbers = b"".join(b"\x8a" + bytes([9]) + n.to_bytes(9, "little", signed=True) for n in shape)
    steps = b"".join(b"\x8a" + bytes([9]) + n.to_bytes(9, "little", signed=True) for n in strides)
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ"
    storage += size.to_bytes(4, "little") + b"tQ"
    head = b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n("
    return head + storage + b"K\x00(" + numbers + b"t(" + steps + b"t\x89ccollections\nOrderedDict\n)RtRs."


BOMBS = {
    "stride-0.pt": checkpoint(tensor_program((2**28,), (0,), 1), [("0", 4)]),
    "huge-shape.pt": checkpoint(tensor_program((2**40,), (1,), 1), [("0", 4)]),
    "shared-storage.pt": checkpoint(tensor_program((1,) * 60, (1,) * 60, 1), [("0", 4)]),
    "nested-key.pt": checkpoint(b"\x80\x02})" + b"\x85" * 1000 + b"K\x01s."),
    "doubled-key.pt": checkpoint(b"\x80\x02}K\x01" + b"q\x00h\x00\x86" * 60 + b"K\x01s."),
    "marks.pt": checkpoint(b"\x80\x02" + b"(" * 200_000 + b"t" * 200_000 + b"."),
    "program.pt": checkpoint(b"\x80\x02" + b"N0" * (40 << 20)),
    "inflated.pt": checkpoint(b"\x80\x02}.", [("0", 600 << 20)]),
}


def all_bombs(folder):
    """Write every file that unpacks to far more than it is; yield its path and reader."""
    for name, data in BOMBS.items():
        (folder / name).write_bytes(data)
        yield folder / name, read_torch_zip
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("policy.pth", bytes(300 << 20))
    yield folder / "bomb.zip", read_sb3
    rows = pyarrow.table({"step": pyarrow.array(np.zeros(15_000_000, np.int64))})
    pyarrow.parquet.write_table(rows, folder / "rows.parquet", compression="zstd")
    yield folder / "rows.parquet", read_table
    text = pyarrow.array(["x" * 1_000_000] * 1000)
    pyarrow.parquet.write_table(pyarrow.table({"event": text}), folder / "text.parquet")
    yield folder / "text.parquet", read_table
    np.savez_compressed(folder / "SafetyPointGoal1-v0.npz", step_row=np.zeros(15_000_000))
    (folder / "SafetyPointGoal1-v0.json").write_text("{}")
    yield folder / "SafetyPointGoal1-v0.npz", load_recording


def test_bombs_are_refused_without_unpacking_them(tmp_path):
    for path, read in list(all_bombs(tmp_path)):
        before = grown()
        with pytest.raises(FileFormatError, match=path.name.split("/")[-1].split(".")[0]):
            read(path)
        assert grown() - before < 64 + 10 * path.stat().st_size / 2**20, path.name


def test_everything_that_was_ever_found_stays_refused():
    cases = sorted(CORPUS.glob("*"))
    assert cases
    for case in cases:
        reader = {".pt": read_omnisafe, ".zip": read_sb3, ".safetensors": read_controller}[case.suffix]
        with pytest.raises(FileFormatError, match=case.name):
            reader(case)


def test_units_of_an_experiment_are_checked():
    for data in (b"", b"PAR1", b"{}", b"[]", b'{"format": "blendctl-unit"}', b"[" * 100_000, pickle.dumps(1)):
        with pytest.raises(FileFormatError, match="unit k"):
            decode(data, key="k")
