"""Draw worlds in the requested render mode: from above, or with MuJoCo's camera."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from blendctl.envs.batch import WorldBatch
from blendctl.envs.compiled_task import SUBSTEPS, CompiledTask
from blendctl.envs.drawing import Picture
from blendctl.envs.gl import explain_missing, find_backend
from blendctl.envs.glyphs import Point2
from blendctl.envs.scene import read_scene
from blendctl.envs.tasks import Task
from blendctl.envs.topdown import TopDown
from blendctl.errors import InputError, StateError, did_you_mean

if TYPE_CHECKING:
    from blendctl.envs.camera import Camera

RENDER_MODES = ("topdown", "rgb_array")
SMALLEST, LARGEST = 16, 4096  # pixels


@dataclass(frozen=True)
class View:
    """Settings of a picture of a world."""

    width: int = 480  # pixels
    height: int = 480  # pixels
    lidar: bool = True  # show the lidar readings around the robot; only from above
    trail: int = 0  # number of earlier positions of the robot to show; only from above

    def __post_init__(self) -> None:
        for name, low, high in (("width", SMALLEST, LARGEST), ("height", SMALLEST, LARGEST), ("trail", 0, 100_000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InputError(f"expected a {name} from {low} to {high}, actually: {value!r}")


class Window:
    """Pictures of the worlds of one task, in one render mode."""

    def __init__(self, mode: str, task: Task, *, view: View | Mapping[str, Any] | None = None) -> None:
        if mode not in RENDER_MODES:
            raise InputError(f'there is no render mode "{mode}"; {did_you_mean(mode, RENDER_MODES)}')
        self.task = task
        self.mode = mode
        self.view = _as_view(view)
        if mode == "rgb_array" and find_backend() is None:
            raise StateError(explain_missing())
        self._topdown: TopDown | None = None
        self._camera: Camera | None = None
        self._trails: dict[int, tuple[int, deque[Point2]]] = {}  # row -> steps at the last picture, places

    def picture(self, batch: WorldBatch, row: int) -> Picture:
        """Draw one world as (height, width, 3) bytes of red, green, blue."""
        scene, view = read_scene(batch, row), self.view
        if self.mode == "rgb_array":
            if self._camera is None:
                from blendctl.envs.camera import Camera

                self._camera = Camera(self.task, width=view.width, height=view.height)
            return self._camera.draw(batch.compiled_task, batch.worlds, row=row, scene=scene)
        if self._topdown is None:
            self._topdown = TopDown(self.task, width=view.width, height=view.height, lidar=view.lidar)
        return self._topdown.draw(scene, trail=self._trail(row, scene.steps, (scene.x, scene.y)))

    def close(self) -> None:
        """Free OpenGL resources; closing twice is allowed."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _trail(self, row: int, steps: int, place: Point2) -> list[Point2]:
        if not self.view.trail:
            return []
        last, places = self._trails.get(row, (-1, deque(maxlen=self.view.trail)))
        if steps < last:  # another episode
            places.clear()
        if steps != last:
            places.append(place)
        self._trails[row] = (steps, places)
        return list(places)


class RenderMetadata:
    """Gymnasium's `metadata`: of the class, every render mode; of a world, those that work on this machine.

    OpenGL is tested when a world's metadata is read, not whenever a world is made.
    """

    def __get__(self, env: Any, owner: type) -> dict[str, Any]:
        if env is None:
            return {"render_modes": list(RENDER_MODES)}
        works = [mode for mode in RENDER_MODES if mode != "rgb_array" or find_backend() is not None]
        return {"render_modes": works, "render_fps": frames_per_second(env.batch.compiled_task)}


def frames_per_second(plan: CompiledTask) -> int:
    """Return the number of control steps per second."""
    return round(1.0 / (SUBSTEPS * plan.timestep))


def _as_view(view: View | Mapping[str, Any] | None) -> View:
    if isinstance(view, View):
        return view
    if view is not None and not isinstance(view, Mapping):
        raise InputError(f'expected a view such as {{"width": 640, "trail": 100}}, actually: {view!r}')
    settings = dict(view or {})
    known = [field.name for field in fields(View)]
    for name in settings:
        if name not in known:
            raise InputError(f'a view has no setting "{name}"; {did_you_mean(str(name), known)}')
    return View(**settings)
