"""Whatever a damaged or hostile file causes is an error of blendctl that names the file; nothing hangs or swells."""

import io
import json
import pickle
import resource
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from blendctl.certificates import read_certificate
from blendctl.controllers import read_controller
from blendctl.controllers.checkpoints import read_omnisafe, read_sb3
from blendctl.controllers.torch_zip import read_torch_zip
from blendctl.envs.recordings import load_recording
from blendctl.errors import BlendctlError, FileFormatError
from blendctl.experiments.store import decode
from blendctl.selftest.damage import odd_json
from blendctl.selftest.file_checks import READERS, fuzz
from blendctl.table_parts import read_table

INPUTS = 2000  # damaged files per reader
CORPUS = Path(__file__).parents[1] / "corpus"
READER_OF: dict[str, Any] = {
    ".pt": read_omnisafe, ".zip": read_sb3, ".safetensors": read_controller, ".parquet": read_table,
    ".json": read_certificate,
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_raise_only_errors_of_blendctl(tmp_path, name):
    inputs = INPUTS // 50 if name == "report" else INPUTS  # a page is built for each of them
    done = fuzz(READERS[name], inputs, folder=tmp_path, seed=sum(name.encode()))
    assert done.escapes == ()
    assert done.refused > inputs // 10
    assert done.growth < 64


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A folder with the file of a controller."""
    folder = tmp_path_factory.mktemp("samples")
    READERS["controller"].make(folder)
    return folder


def test_odd_values_in_the_header_of_a_record_raise_only_errors_of_blendctl(tmp_path):
    rng = np.random.default_rng(1)
    reader = READERS["record"]
    reader.make(tmp_path)
    path = tmp_path / reader.file
    table = pyarrow.parquet.read_table(path)
    header = table.schema.metadata[b"blendctl-record"].decode()
    for number in range(150):
        changed = odd_json(header, rng)
        pyarrow.parquet.write_table(table.replace_schema_metadata({"blendctl-record": changed}), path)
        try:
            reader.read(path)
        except BlendctlError:
            continue
        except BaseException as error:
            error.add_note(f"input {number}: {changed[:2000]}")
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
    assert (
        read_controller(tmp_path / "old.safetensors").digest
        == read_controller(samples / "controller.safetensors").digest
    )


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
        reader = READER_OF[case.suffix]
        with pytest.raises(FileFormatError, match=case.name):
            reader(case)


def test_units_of_an_experiment_are_checked():
    for data in (b"", b"PAR1", b"{}", b"[]", b'{"format": "blendctl-unit"}', b"[" * 100_000, pickle.dumps(1)):
        with pytest.raises(FileFormatError, match="unit k"):
            decode(data, key="k")


def test_a_certificate_of_too_many_episodes_is_refused(tmp_path):
    READERS["certificate"].make(tmp_path)
    path = tmp_path / "certificate.json"
    zeros = [0] * 200_000
    path.write_text(json.dumps(json.loads(path.read_text()) | {"costs": zeros, "returns": zeros}))
    with pytest.raises(FileFormatError, match="it has 200000 episodes; allowed: 100000"):
        read_certificate(path)
