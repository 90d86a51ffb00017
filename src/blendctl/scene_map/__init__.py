"""Maps of a scene from what a lidar has shown: where objects are that are hidden now."""

from blendctl.scene_map.maps import LAG, Maps
from blendctl.scene_map.memory import MappedKind, SceneMemory

__all__ = ["LAG", "MappedKind", "Maps", "SceneMemory"]
