"""A training run on disk: configuration, checkpoints, logs, the latest controller."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save

from blendctl.atomic import append_line, write_atomically
from blendctl.controllers import NetworkController, write_controller
from blendctl.directory_lock import DirectoryLock
from blendctl.errors import InputError, MissingExtraError, StateError
from blendctl.file_reading import reading
from blendctl.training.config import TrainConfig
from blendctl.training.trainer import Trainer, UpdateRecord

FORMAT = "blendctl-checkpoint"
VERSION = 1


class TrainingRun:
    """Train in a directory: `with TrainingRun(directory, config) as run: for record in run.records(): ...`.

    A checkpoint is written at the start, at least every `every` seconds, and at the end. After an
    interruption `resume=True` continues bit for bit from the latest one. A lock keeps a second process out.
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
        self.planned: list[int] = []  # planned steps before each extension of the run
        self.config: TrainConfig
        self.trainer: Trainer
        self._lock = DirectoryLock(self.directory)
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
        """Path of the latest checkpoint."""
        return self.directory / "checkpoint.safetensors"

    @property
    def controller_path(self) -> Path:
        """Path of the latest controller; `blendctl.controllers.load` reads it."""
        return self.directory / "controller.safetensors"

    def records(self) -> Iterator[UpdateRecord]:
        """Train; log and yield each record; write checkpoints."""
        writer = _tensorboard(self.directory)
        last_checkpoint = time.monotonic()
        try:
            for record in self.trainer.records():
                row = record.to_dict()
                self.history.append(row)
                append_line(self.directory / "progress.jsonl", json.dumps(row))
                for name, value in row.items():
                    if isinstance(value, int | float):
                        writer.add_scalar(name, value, record.steps)
                done = record.steps >= self.config.steps
                if done or time.monotonic() - last_checkpoint > self.every:
                    self.checkpoint()
                    last_checkpoint = time.monotonic()
                yield record
        finally:
            writer.close()

    def checkpoint(self) -> None:
        """Write the whole state and the controller, each file atomically."""
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
                "still there: free disk space, then resume"
            ) from error

    def extend(self, steps: int) -> None:
        """Train for more steps than first planned; annealed learning rates rise again to fit."""
        self.planned = [*self.planned, self.config.steps]
        self.config = replace(self.config, steps=steps)
        self.trainer.configure(self.config)
        write_atomically(self.directory / "config.json", self.config.to_json().encode())

    def controller(self) -> NetworkController:
        """Return the present controller."""
        return self.trainer.policy.to_controller(f"{self.config.world}/{self.config.algo}")

    def __enter__(self) -> TrainingRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

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
        with reading(self.checkpoint_path, "a checkpoint"):
            saved = TrainConfig.from_dict(header["config"])
        if config is not None and config != saved:
            raise InputError(
                f"{self.directory} was trained with other options (see its config.json); resume without them"
            )
        self.config = saved
        self.trainer = Trainer(saved)
        with reading(self.checkpoint_path, "a checkpoint"):
            self.trainer.restore(tensors, header["state"])
            self.history = list(header["history"])
            self.planned = list(header.get("planned", []))
        # Drop the records after the checkpoint: they are computed again.
        lines = "".join(json.dumps(row) + "\n" for row in self.history)
        write_atomically(self.directory / "progress.jsonl", lines.encode())


def _read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if not path.is_file():
        raise InputError(f"{path.parent} holds no checkpoint to resume; start the run without --resume")
    with reading(path, "a readable blendctl checkpoint"), safe_open(str(path), framework="pt") as file:
        header = json.loads((file.metadata() or {})["blendctl"])
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise ValueError(f"format {header['format']} version {header['version']}")
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict


def _tensorboard(directory: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", extra="train") from error
    return SummaryWriter(str(directory / "tensorboard"))
