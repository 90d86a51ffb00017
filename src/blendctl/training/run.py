"""A run directory: configuration, checkpoints, logs, the latest controller; one process at a time."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from blendctl.atomic import write_atomically
from blendctl.controllers import NetworkController, write_controller
from blendctl.errors import FileFormatError, InputError, MissingExtraError, StateError
from blendctl.training.config import TrainConfig
from blendctl.training.trainer import Record, Trainer

__all__ = ["Run"]

FORMAT = "blendctl-checkpoint"
VERSION = 1


class Run:
    """Train in a directory: `with Run(directory, config) as run: for record in run.records(): ...`.

    A checkpoint is written at the start, at least every `every` seconds, and at the end. After an
    interruption `resume=True` continues bit for bit from the latest one.
    """

    def __init__(
        self,
        directory: str | Path,
        config: TrainConfig | None = None,
        *,
        resume: bool = False,
        every: float = 45.0,
        start_from: NetworkController | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.every = every
        self.history: list[dict[str, Any]] = []
        self.planned: list[int] = []  # steps that were planned before the run was extended
        self.config: TrainConfig
        self.trainer: Trainer
        self._lock = self._take_lock()
        try:
            if resume:
                self._resume(config)
            else:
                self._start(config, start_from)
        except BaseException:
            self._lock.close()
            raise

    @property
    def checkpoint_path(self) -> Path:
        """Where the latest checkpoint is."""
        return self.directory / "checkpoint.safetensors"

    @property
    def controller_path(self) -> Path:
        """Where the latest controller is; `blendctl.controllers.load` takes it."""
        return self.directory / "controller.safetensors"

    def records(self) -> Iterator[Record]:
        """Train; log and yield each record; keep the latest good state on disk whatever happens."""
        log = (self.directory / "progress.jsonl").open("a")
        board = _tensorboard(self.directory)
        last_good = time.monotonic()
        try:
            for record in self.trainer.records():
                row = record.to_dict()
                self.history.append(row)
                log.write(json.dumps(row) + "\n")
                log.flush()
                for name, value in row.items():
                    if isinstance(value, int | float):
                        board.add_scalar(name, value, record.steps)
                done = record.steps >= self.config.steps
                if done or time.monotonic() - last_good > self.every:
                    self.checkpoint()
                    last_good = time.monotonic()
                yield record
        finally:
            log.close()
            board.close()

    def checkpoint(self) -> None:
        """Write the whole state and the controller; the old files stay until the new ones are complete."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "config": json.loads(self.config.to_json()),
            "state": self.trainer.state(),
            "history": self.history,
            "planned": self.planned,
        }
        data = save(self.trainer.tensors(), metadata={"blendctl": json.dumps(header)})
        try:
            write_atomically(self.checkpoint_path, data)
            write_controller(self.controller(), self.controller_path)
        except OSError as error:
            raise StateError(
                f"cannot write to {self.directory} ({error.strerror or error}); the last good checkpoint is "
                "still there: make room, then resume"
            ) from error

    def extend(self, steps: int) -> None:
        """Train on to more steps than first planned; annealed learning rates rise again to fit."""
        self.planned = [*self.planned, self.config.steps]
        self.config = replace(self.config, steps=steps)
        self.trainer.configure(self.config)
        write_atomically(self.directory / "config.json", self.config.to_json().encode())

    def controller(self) -> NetworkController:
        """Give the present controller."""
        return self.trainer.policy.to_controller(f"{self.config.world}/{self.config.algo}")

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.close()

    def _take_lock(self) -> Any:
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = (self.directory / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise StateError(
                f"{self.directory} is in use by another training run; wait, or choose another --out"
            ) from error
        return lock

    def _start(self, config: TrainConfig | None, start_from: NetworkController | None) -> None:
        if self.checkpoint_path.exists():
            raise InputError(
                f"{self.directory} already holds a run; continue it with --resume, or choose another --out"
            )
        self.config = config or TrainConfig()
        self.trainer = Trainer(self.config, start_from=start_from)
        write_atomically(self.directory / "config.json", self.config.to_json().encode())
        (self.directory / "progress.jsonl").unlink(missing_ok=True)
        self.checkpoint()

    def _resume(self, config: TrainConfig | None) -> None:
        header, tensors = _read_checkpoint(self.checkpoint_path)
        saved = TrainConfig.from_dict(header["config"])
        if config is not None and config != saved:
            raise InputError(
                f"{self.directory} was trained with other options (see its config.json); resume without them"
            )
        self.config = saved
        self.trainer = Trainer(saved)
        self.trainer.restore(tensors, header["state"])
        self.history = list(header["history"])
        self.planned = list(header.get("planned", []))
        # Records after the checkpoint will be made again.
        lines = "".join(json.dumps(row) + "\n" for row in self.history)
        write_atomically(self.directory / "progress.jsonl", lines.encode())


def _read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not path.is_file():
        raise InputError(f"{path.parent} holds no checkpoint to resume; start the run without --resume")
    try:
        with safe_open(str(path), framework="pt") as file:
            header = json.loads((file.metadata() or {})["blendctl"])
            if header["format"] != FORMAT or header["version"] != VERSION:
                raise ValueError(f"format {header['format']} version {header['version']}")
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FileFormatError(f"{path} is no readable blendctl checkpoint ({error})") from error


def _tensorboard(directory: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", extra="train") from error
    return SummaryWriter(str(directory / "tensorboard"))
