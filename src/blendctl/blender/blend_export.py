"""Export a blender: describe it as data, and record the golden vectors that the export must reproduce."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import generator
from blendctl.bandit.core import seed_words
from blendctl.blender import bound_check
from blendctl.blender.handover import CrossFade, SlewLimit
from blendctl.controllers.adapters import FunctionController
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.remote import RemoteController
from blendctl.errors import InputError, StateError
from blendctl.export.exportable import c_source
from blendctl.export.spec import BlendSpec, DriftTest, Golden
from blendctl.export.write import check_directory, check_exportable, check_format, write_export

if TYPE_CHECKING:
    from blendctl.blender.core import Blender

GOLDEN_STEPS = 24
SEED = 0


class CompiledNormals:
    """Draw standard normals as an exported blend does; a replacement for a NumPy generator."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words.reshape(1, 4).copy()

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return an array of standard normals."""
        out = np.empty((1, int(np.prod(shape))))
        generator.normals(self.words, out, True)
        return out.reshape(shape)


def export_blender(
    blender: Blender,
    directory: str | Path,
    *,
    kind: str,
    float32: bool,
    stochastic: bool,
    replace: bool,
    world: str | None,
    observations: ArrayLike | None,
    control_period: float | None,
    seed: int,
) -> list[Path]:
    """Write a blender as C or ONNX, see `Blender.export`."""
    check_format(kind)
    check_directory(directory, replace=replace)
    sizes = _sizes(blender, world=world, observations=observations)
    noise: NDArray[np.uint64] | None = None
    if stochastic:
        noise = np.stack([seed_words(seed + arm) for arm in range(len(blender.names))])
    interface = _interface(blender, world=world, control_period=control_period)
    nothing = Golden(np.zeros((1, sizes[0])), np.zeros((1, 1)), np.zeros(1, np.int64), np.zeros((1, sizes[1])))
    # Name every part that cannot be exported before anything is copied or driven.
    check_exportable(_spec(blender, sizes, noise=noise, golden=nothing, interface=interface, seed=seed), kind=kind)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "blend.safetensors"
        blender.save(file)
        described, driven = (_replica(blender, file, sizes[1], noise) for _ in range(2))
    with described, driven:
        golden = _record(driven, sizes, world=world, observations=observations, seed=seed)
        spec = _spec(described, sizes, noise=noise, golden=golden, interface=interface, seed=seed)
        return write_export(spec, directory, kind=kind, float32=float32, replace=replace)


def _sizes(blender: Blender, *, world: str | None, observations: ArrayLike | None) -> tuple[int, int]:
    """Return the sizes of observations and actions."""
    shape = blender.drivers.shape
    declared = [c_source(_function(controller)) for controller in blender.controllers]
    if shape is None:
        shape = next(((one.action_size,) for one in declared if one is not None and one.action_size), None)
    sizes = [getattr(controller, "observation_size", None) for controller in blender.controllers]
    sizes += [one.observation_size for one in declared if one is not None]
    if observations is not None:
        sizes.insert(0, np.asarray(observations).shape[-1])
    if blender.feature.network is not None:
        sizes.append(blender.feature.network.encoding.observation_size)
    size = next((size for size in sizes if isinstance(size, int)), None)
    if size is None and world is not None:
        from blendctl.envs.catalog import find_task

        size = find_task(world).observation_size
    if size is None or shape is None or len(shape) != 1:
        raise InputError(
            "an export needs the sizes of observations and actions, which these controllers do not declare; pass "
            "Blender(..., action_shape=(n,)) and export(..., observations=array of shape (steps, observation_size))"
        )
    return size, int(shape[0])


def _function(controller: Controller) -> object:
    return controller.function if isinstance(controller, FunctionController) else controller


def _replica(blender: Blender, file: Path, action_size: int, noise: NDArray[np.uint64] | None) -> Blender:
    """Return a blender that starts from the file; its feedback is the vector of the objectives."""
    made = type(blender)(
        [copy.deepcopy(c) if isinstance(c, Stateful) and not isinstance(c, RemoteController) else c
         for c in blender.controllers],
        blender.names,
        objectives=[(name, _entry(k)) for k, name in enumerate(blender.objectives.names)],
        features=blender.declared_feature,
        hold=blender.hold,
        dwell=blender.dwell,
        context=blender.context,
        frozen=blender.frozen,
        bandit=file,
        fallback=[blender.names[arm] for arm in blender.fallback],
        safe_action=blender.safe_action,
        guard=None if blender.guard is None else blender.guard.to_dict(),
        handover=blender.handover,
        bench=blender.drivers.bench.rules,
        action_shape=(action_size,),
        stochastic=False,
        seed=SEED,
    )  # fmt: skip
    made.drivers.end_episode(0)  # reset stateful controllers
    if noise is not None:
        made.drivers.draw_from([CompiledNormals(words) for words in noise])
    return made


def _entry(k: int) -> Any:
    return lambda feedback: feedback[f"objective_{k}"]


def observe_vector(blender: Blender, feedback: Sequence[float]) -> str:
    """Pass the vector of the objectives, as maximised, to a replica."""
    signals: dict[str, Any] = {f"objective_{k}": float(value) for k, value in enumerate(feedback)}
    if "-cost" in blender.objectives.names:
        signals["cost"] = -float(feedback[blender.objectives.names.index("-cost")])
    return blender.observe(**signals)


def _record(
    blender: Blender, sizes: tuple[int, int], *, world: str | None, observations: ArrayLike | None, seed: int
) -> Golden:
    """Drive some steps; return the inputs and outputs of each."""
    rng = np.random.default_rng(seed)
    env: Any = None
    if observations is not None:
        rows = np.atleast_2d(np.asarray(observations, np.float64))[:GOLDEN_STEPS]
    elif world is not None:
        from blendctl.envs import SingleWorld

        env = SingleWorld(world)
        rows = np.empty((GOLDEN_STEPS, sizes[0]))
        rows[0] = env.reset(seed=seed)[0]
    else:
        rows = rng.uniform(0.0, 1.0, (GOLDEN_STEPS, sizes[0]))
    names = blender.objectives.names
    seen: list[tuple[FloatArray, FloatArray, int, FloatArray]] = []
    ended = False  # the episode of a world
    for t, row in enumerate(rows):
        observation = row.copy()
        try:
            action = blender.act(observation)
        except StateError:
            break  # no controller can drive, and there is no safe action
        choice = blender.choice
        assert choice is not None
        feedback = -rng.uniform(0.0, 1.0, len(names)) * rng.integers(0, 2, len(names))
        if env is not None:
            following, reward, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            parts = {"reward": float(reward)} | {f"-{name}": -float(value) for name, value in info.items()}
            feedback = np.array([parts.get(name, value) for name, value in zip(names, feedback, strict=True)])
            if t + 1 < len(rows):
                rows[t + 1] = following
        observe_vector(blender, feedback.tolist())
        seen.append((observation, feedback, choice.arm, np.asarray(action, np.float64)))
        if ended:
            break
    if env is not None:
        env.close()
    if not seen:
        raise InputError("no controller could drive at the first observation, so there are no golden vectors")
    columns = list(zip(*seen, strict=True))
    return Golden(np.array(columns[0]), np.array(columns[1]), np.array(columns[2]), np.array(columns[3]))


def _spec(
    blender: Blender,
    sizes: tuple[int, int],
    *,
    noise: NDArray[np.uint64] | None,
    golden: Golden,
    interface: dict[str, Any],
    seed: int,
) -> BlendSpec:
    rules, handover = blender.drivers.bench.rules, blender.handover
    return BlendSpec(
        names=blender.names,
        controllers=blender.controllers,
        feature=blender.declared_feature,
        bound=blender.feature,
        objectives=blender.objectives.names,
        options=blender.bandit.options,
        learner=blender.bandit.snapshot(),
        hold=blender.hold,
        dwell=blender.dwell,
        frozen=blender.frozen,
        previous=blender.context == "previous",
        fallback=blender.fallback,
        bench=(rules.first, rules.growth, rules.longest),
        safe_action=blender.safe_action,
        guard=None if blender.guard is None else blender.guard.to_dict(),
        slew_limits=handover.limits(sizes[1]) if isinstance(handover, SlewLimit) else None,
        fade_steps=handover.steps if isinstance(handover, CrossFade) else 0,
        observation_size=sizes[0],
        action_size=sizes[1],
        noise=noise,
        first=seed_words(seed),
        drift=DriftTest(
            false_alarm=bound_check.FALSE_ALARM,
            rate=bound_check.RATE,
            spread=blender.bound_check.spread,
            stakes=bound_check.STAKES,
            epoch=bound_check.EPOCH,
        ),
        golden=golden,
        interface=interface,
    )


def _interface(blender: Blender, *, world: str | None, control_period: float | None) -> dict[str, Any]:
    """Return names, units and bounds of a world's observations and actions, as far as they are known."""
    about: dict[str, Any] = {"features": blender.feature_name, "world": world, "control_period": control_period}
    if world is not None:
        from blendctl.envs.interface import describe_interface

        described = describe_interface(world)
        about |= described | ({} if control_period is None else {"control_period": control_period})
    return about
