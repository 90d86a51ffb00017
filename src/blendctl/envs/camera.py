"""Draw a world with MuJoCo's camera; needs OpenGL, but no screen."""

from __future__ import annotations

import atexit
from typing import Any

import mujoco
import numpy as np

from blendctl.envs.compiled_task import CompiledTask
from blendctl.envs.drawing import Picture
from blendctl.envs.gl import open_context
from blendctl.envs.glyphs import Color
from blendctl.envs.kernels import load_world
from blendctl.envs.palette import kind_colors
from blendctl.envs.physics import make_slot
from blendctl.envs.scene import Body, Scene
from blendctl.envs.tasks import Task
from blendctl.envs.world import model_xml
from blendctl.envs.world_state import WorldState

ELEVATION = -52.0  # degrees, looking down
AZIMUTH = 90.0  # degrees, looking along y
FIELD_OF_VIEW = 40.0  # degrees

_IDENTITY = np.eye(3).ravel()


class Camera:
    """Draw the worlds of one task, `width` by `height` pixels; close it when done."""

    def __init__(self, task: Task, *, width: int, height: int) -> None:
        self.task = task
        self.colors = kind_colors(task)
        self._slot, (self._model, self._data) = make_slot(_drawn_model(task, width, height, self.colors))
        extras = sum(kind.count for kind in task.objects)
        self._scene = mujoco.MjvScene(self._model, maxgeom=self._model.ngeom + extras + 100)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._pixels = np.empty((height, width, 3), np.uint8)
        self._context: Any = open_context(width, height)
        atexit.register(self.close)  # contexts must be freed before their library
        self._context.make_current()
        self._drawer: Any = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._drawer)

    def draw(self, plan: CompiledTask, worlds: WorldState, *, row: int, scene: Scene) -> Picture:
        """Draw one world with its scene, as (height, width, 3) bytes of red, green, blue."""
        self._context.make_current()
        load_world(plan, self._slot, worlds, row)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        self._aim(scene)
        # the infinite floor is drawn around the camera, so the camera must be set first
        mujoco.mjv_updateCamera(self._model, self._data, self._camera, self._scene)
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera, int(mujoco.mjtCatBit.mjCAT_ALL), self._scene
        )
        for body in scene.bodies:
            if not body.kind.solid:
                self._add_geom(body)
        mujoco.mjr_render(self._rect, self._scene, self._drawer)
        mujoco.mjr_readPixels(self._pixels, None, self._rect, self._drawer)
        return np.ascontiguousarray(self._pixels[::-1])  # OpenGL's rows go from bottom to top

    def close(self) -> None:
        """Free OpenGL resources; closing twice is allowed."""
        atexit.unregister(self.close)
        if self._context is not None:
            self._context.make_current()
            self._drawer.free()
            self._context.free()
            self._drawer = self._context = None

    def _aim(self, scene: Scene) -> None:
        """Look at the whole square; follow a robot that leaves it."""
        extents = self.task.extents
        seen = extents - 0.2
        beyond = [value - min(max(value, -seen), seen) for value in (scene.x, scene.y)]
        camera = self._camera
        camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        camera.lookat[:] = (beyond[0], beyond[1] - 0.1 * extents, 0.0)
        camera.distance = 3.05 * (extents + 0.2) + 0.15  # the near corners of the square stay in the picture
        camera.azimuth, camera.elevation = AZIMUTH, ELEVATION

    def _add_geom(self, body: Body) -> None:
        """Add an object that is not in the model because it touches nothing."""
        kind, scene = body.kind, self._scene
        mujoco.mjv_initGeom(
            scene.geoms[scene.ngeom],
            mujoco.mjtGeom.mjGEOM_CYLINDER,
            np.array([kind.size, kind.thickness, 0.0]),
            np.array([body.x, body.y, body.z]),
            _IDENTITY,
            np.array(_rgba(self.colors[kind.name], kind.alpha), np.float32),
        )
        scene.ngeom += 1


def _rgba(color: Color, alpha: float = 1.0) -> tuple[float, float, float, float]:
    red, green, blue = (value / 255.0 for value in color)
    return red, green, blue, alpha


def _drawn_model(task: Task, width: int, height: int, colors: dict[str, Color]) -> mujoco.MjModel:
    """Compile the task's model again, with colours, a floor pattern and light; its joints are the same."""
    spec = mujoco.MjSpec.from_string(model_xml(task))
    visual = spec.visual
    visual.global_.offwidth, visual.global_.offheight = max(width, 64), max(height, 64)
    visual.global_.fovy = FIELD_OF_VIEW
    visual.quality.offsamples, visual.quality.shadowsize = 4, 2048
    visual.headlight.ambient, visual.headlight.diffuse = [0.35] * 3, [0.25] * 3
    visual.headlight.specular = [0.0] * 3
    # objects are far away until a layout places them; set the extent of shadows for their later positions
    spec.stat.center, spec.stat.extent = [0.0, 0.0, 0.2], 1.5 * task.extents
    texture, pattern = mujoco.mjtTexture, mujoco.mjtBuiltin
    for name, kind, builtin, rgb1, rgb2, wide, high in (
        ("sky", texture.mjTEXTURE_SKYBOX, pattern.mjBUILTIN_GRADIENT, [0.93, 0.95, 0.97], [0.75, 0.82, 0.88], 64, 384),
        ("floor", texture.mjTEXTURE_2D, pattern.mjBUILTIN_CHECKER, [0.90, 0.89, 0.87], [0.84, 0.83, 0.81], 256, 256),
    ):
        spec.add_texture(name=name, type=kind, builtin=builtin, rgb1=rgb1, rgb2=rgb2, width=wide, height=high)
    material = spec.add_material(name="floor", texrepeat=[1.0, 1.0], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "floor"
    spec.worldbody.add_light(
        pos=[-0.8 * task.extents, -0.4 * task.extents, 3.0 * task.extents],
        dir=[0.8, 0.4, -3.0],
        type=mujoco.mjtLightType.mjLIGHT_SPOT,
        cutoff=60.0,
        exponent=0.0,
        attenuation=[1.0, 0.0, 0.0],
        castshadow=True,
        diffuse=[0.4] * 3,
        specular=[0.1] * 3,
    )
    for body in spec.bodies:
        kind = body.name.partition(".")[0]
        for geom in body.geoms:
            if geom.name == "floor":
                geom.material, geom.size = "floor", [0.0, 0.0, 0.1]  # infinite
            else:
                geom.rgba = _rgba(colors.get(kind, task.robot_spec.color))
    return spec.compile()
