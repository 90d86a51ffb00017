"""Save, load and export a blender."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from numpy.typing import ArrayLike

from blendctl.blender.blend_dir import Driver, read_blend_dir

if TYPE_CHECKING:
    from blendctl.bandit import BlendingBandit
    from blendctl.blender.core import Blender
    from blendctl.blender.objectives import Objectives
    from blendctl.features import BoundFeature


class BlendFiles:
    """Methods of `Blender` that write and read files."""

    bandit: BlendingBandit
    feature: BoundFeature
    names: list[str]
    objectives: Objectives
    _lock: threading.RLock

    if TYPE_CHECKING:

        def __init__(self, controllers: Sequence[Driver], **settings: Any) -> None: ...

    def save(self, path: str | Path) -> None:
        """Write what it has learned, its features included; `Blender(..., bandit=path)` continues from there."""
        with self._lock:
            about = {"names": self.names, "objectives": self.objectives.names}
            self.bandit.save(path, beside=self.feature.state(), about=about)

    @classmethod
    def load(cls, directory: str | Path, *, controllers: Sequence[str | Driver] | None = None, **changes: Any) -> Self:
        """Make the blender of a directory that `blendctl blend --out` wrote; `changes` replace its arguments.

        controllers: its controllers, or how `open_controller` finds them. They must be passed if they are Python code,
        TorchScript or remote, because nothing that a file names may run code.
        """
        blend = read_blend_dir(directory)
        settings: dict[str, Any] = {"bandit": blend.file, "names": list(blend.names)} | blend.settings | changes
        return cls(blend.open_controllers(controllers), **settings)

    def export(
        self,
        directory: str | Path,
        *,
        format: Literal["c", "onnx"] = "c",
        float32: bool = False,
        stochastic: bool = False,
        replace: bool = False,
        world: str | None = None,
        observations: ArrayLike | None = None,
        control_period: float | None = None,
        seed: int = 0,
    ) -> list[Path]:
        """Write the blend as files that run without Python, with contract.json; return their paths.

        format: "c" writes blend.c and blend.h (C99), "onnx" writes blend.onnx. They start from the present state.
        float32: compute geometry in single precision, except for next-step predictions; the learner stays in double.
        stochastic: sample actions, with a generator from `seed`; otherwise means.
        replace: replace files in a directory that is not empty.
        world: world of blendctl that is driven, for names, units and golden vectors of a real drive.
        observations: (steps, observation_size) for golden vectors in other environments; by default random numbers.
        control_period: seconds per control step, for the contract.
        """
        from blendctl.blender.blend_export import export_blender

        with self._lock:
            return export_blender(
                cast("Blender", self), directory, kind=format, float32=float32, stochastic=stochastic, replace=replace,
                world=world, observations=observations, control_period=control_period, seed=seed,
            )  # fmt: skip
