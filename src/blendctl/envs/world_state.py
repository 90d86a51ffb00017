"""Hold the complete state of worlds: arrays with a row per world, and their bytes."""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray, IntArray
from blendctl.envs.compiled_task import BUTTON, CompiledTask
from blendctl.envs.mersenne import STATE_WORDS, Words
from blendctl.envs.tasks import Task
from blendctl.errors import FileFormatError, InputError

RUNNING, ENDED, UNBORN = range(3)  # phase of an episode

_MAGIC = b"BLWORLD\x01"  # the last byte is the version of the format
_HEADER = struct.Struct("<8s16sQ")  # magic and version, fingerprint of the task, bytes that follow


class WorldState(NamedTuple):
    """The complete state of n worlds; row i is world i and nothing else."""

    qpos: FloatArray  # (n, nq)
    qvel: FloatArray  # (n, nv)
    warmstart: FloatArray  # (n, nv) solver's first guess
    time: FloatArray  # (n,) s, drives the gremlins
    xy: FloatArray  # (n, items, 2) m, start positions; for the goal its present position
    rot: FloatArray  # (n, items) rad
    sampled_goal: FloatArray  # (n, 2) m, first goal of the layout, which was drawn again
    last: FloatArray  # (n, 2) m, distances that the next reward is measured from
    button: IntArray  # (n,) goal button, -1 without buttons
    timer: IntArray  # (n,) steps for which buttons still rest
    steps: IntArray  # (n,) since the episode began
    phase: IntArray  # (n,) RUNNING, ENDED or UNBORN
    key: Words  # (n, 624) random generator
    pos: IntArray  # (n, 1) position in it
    position: FloatArray  # (n, 3) m, of the robot
    rotation: FloatArray  # (n, 9) of the robot, row-major, body to world
    obs: FloatArray  # (n, obs) last observation


def empty_worlds(plan: CompiledTask, model: mujoco.MjModel, num_envs: int) -> WorldState:
    """Allocate n worlds that have not been reset yet."""
    items = plan.keepout.shape[0]

    def floats(*shape: int) -> FloatArray:
        return np.zeros((num_envs, *shape))

    def ints(value: int, *shape: int) -> IntArray:
        return np.full((num_envs, *shape), value, dtype=np.int64)

    return WorldState(
        qpos=floats(model.nq),
        qvel=floats(model.nv),
        warmstart=floats(model.nv),
        time=floats(),
        xy=floats(items, 2),
        rot=floats(items),
        sampled_goal=floats(2),
        last=floats(2),
        button=ints(-1),
        timer=ints(0),
        steps=ints(0),
        phase=ints(UNBORN),
        key=np.zeros((num_envs, STATE_WORDS), dtype=np.uint32),
        pos=ints(0, 1),
        position=floats(3),
        rotation=floats(9),
        obs=floats(plan.obs_size),
    )


def copy_worlds(worlds: WorldState, rows: NDArray[np.int64] | slice = slice(None)) -> WorldState:
    """Copy the worlds of some rows."""
    return WorldState._make(array[rows].copy() for array in worlds)


def fingerprint(task: Task) -> bytes:
    """Return 16 bytes that identify a task; the length of an episode is not part of a world's state."""
    text = repr((task.robot, task.reward, task.extents, task.agent_keepout, task.objects))
    return hashlib.sha256(text.encode()).digest()[:16]


def pack_world(worlds: WorldState, row: int, mark: bytes) -> bytes:
    """Write one world as bytes: header, the row of every array (little-endian), checksum."""
    body = b"".join(array[row].astype(array.dtype.newbyteorder("<")).tobytes() for array in worlds)
    text = _HEADER.pack(_MAGIC, mark, len(body)) + body
    return text + struct.pack("<I", zlib.crc32(text))


def unpack_world(snapshot: bytes, like: WorldState, mark: bytes) -> WorldState:
    """Read one world, without the axis of worlds; raise FileFormatError if the bytes are not such a world."""
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise InputError(f"expected a snapshot as bytes, actually: {type(snapshot).__name__}")
    text = bytes(snapshot)
    if len(text) < _HEADER.size + 4 or text[:7] != _MAGIC[:7]:
        raise FileFormatError("these bytes are not a snapshot of a blendctl world")
    magic, stored_mark, length = _HEADER.unpack_from(text)
    if magic != _MAGIC:
        raise FileFormatError(
            f"the snapshot has format {magic[7]}, this blendctl reads format {_MAGIC[7]}; take a new snapshot"
        )
    if stored_mark != mark:
        raise FileFormatError("the snapshot is of another world; restore it into a world of the same task")
    size = sum(array[0].nbytes for array in like)
    if length != size or len(text) != _HEADER.size + size + 4:
        wanted = _HEADER.size + size + 4
        raise FileFormatError(f"the snapshot is truncated or too long: expected {wanted} bytes, actually: {len(text)}")
    if struct.unpack("<I", text[-4:])[0] != zlib.crc32(text[:-4]):
        raise FileFormatError("the snapshot is damaged: its checksum does not match")
    rows, at = [], _HEADER.size
    for array in like:
        row = np.frombuffer(text, dtype=array.dtype.newbyteorder("<"), count=array[0].size, offset=at)
        rows.append(row.reshape(array.shape[1:]).astype(array.dtype))
        at += row.nbytes
    return WorldState._make(rows)


def check_world(world: WorldState, plan: CompiledTask) -> None:
    """Raise FileFormatError for values that no step can produce; compiled code trusts them as addresses."""
    # MuJoCo's own limit; larger numbers overflow in distances and rewards
    finite = all((np.abs(array) <= mujoco.mjMAXVAL).all() for array in world if array.dtype.kind == "f")
    counts = min(world.timer, world.steps) >= 0 and world.phase in (RUNNING, ENDED)
    lowest = 0 if plan.reward == BUTTON else -1
    addresses = lowest <= world.button < plan.buttons and 0 <= world.pos[0] <= STATE_WORDS
    if not (finite and counts and addresses):
        raise FileFormatError("the snapshot is damaged: its values cannot be those of a world")
