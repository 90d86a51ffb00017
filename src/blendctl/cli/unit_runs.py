"""Shared parts of the commands that run experiment units: progress, and notes about the output directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from blendctl.cli.output import echo, progress_bar

if TYPE_CHECKING:
    from pathlib import Path

    from blendctl.experiments.engines import ProgressEvent
    from blendctl.experiments.store import Store


class UnitProgress:
    """A progress bar of units; call it with every event of the engine."""

    def __init__(self, bar: Any, labels: Mapping[str, str]) -> None:
        self._bar, self._labels = bar, labels
        self._task = bar.add_task("starting", total=len(labels))
        self._running: dict[str, None] = {}
        self._text = ""

    def describe(self, text: str) -> None:
        """Show a text instead of the units that are running."""
        self._text = text
        self._bar.update(self._task, description=text)

    def __call__(self, event: ProgressEvent) -> None:
        key = event.unit.key
        if event.state == "started":
            self._running[key] = None
        else:
            self._running.pop(key, None)
        if event.state in ("lost", "failed"):
            message = f"{self._labels[key]}: unit {event.state}: {event.message}"
            self._bar.console.print(message, highlight=False, soft_wrap=True)
        running = ", ".join(dict.fromkeys(self._labels[key] for key in self._running)) or "done"
        self._bar.update(self._task, completed=event.done, description=self._text or running[:40])


@contextmanager
def unit_progress(labels: Mapping[str, str]) -> Iterator[UnitProgress]:
    """Show the progress of units; `labels` maps each unit's key to the text shown for it."""
    with progress_bar(counted=True) as bar:
        yield UnitProgress(bar, labels)


def warn_changed_versions(store: Store) -> None:
    """Warn if the finished units of a directory were computed with other package versions."""
    if store.version_changes:
        echo(
            f"package versions changed since an earlier session ({store.version_changes}): finished units are kept; "
            "use a new directory for a run with one set of versions",
            err=True,
        )


def warn_damaged_units(store: Store) -> None:
    """Name the unit files that were damaged."""
    for name in store.damaged:
        echo(f"units/{name} was damaged and was run again", err=True)


def say_how_to_resume(out: Path, command: str) -> None:
    """Print the command that continues an interrupted run."""
    echo(f"stopped; finished units are in {out}; the same command resumes the run:\n  {command}", err=True)
