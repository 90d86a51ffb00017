"""Write the paths of look-ahead networks as C: what their map shows, and how an observation gets on it."""

from __future__ import annotations

from blendctl.controllers.path_encoding import FARTHEST, LEAST_SPREAD, PathEncoding
from blendctl.export.c_builder import CBuilder
from blendctl.export.c_text import array, define, number
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE
from blendctl.scene_map import LAG, maps, search

NOTICE = """\
/* Take notice of an observation after so many control steps of the episode. */
static void notice_at(struct blend_state *s, struct work *w, const double *observation, int64_t step)
{
    observe_scene(&s->scene, observation, step);
    if (w->noticed != step) {
        w->noticed = step;
        w->met = w->foresaw = 0;
    }
}
"""


def path_constants(paths: PathEncoding) -> str:
    """Return the constants of `scene_map.c` and `paths.c`."""
    declared = paths.declaration
    kinds = declared.open(1).kinds
    slots = _slots(paths)
    rows = [
        ", ".join(
            [
                *(str(int(value)) for value in (kinds.start[i], kinds.counts[i], kinds.first[i], slot)),
                *(str(int(value)) for value in (kinds.steady[i], kinds.circling[i], kinds.dark[i], kinds.support[i])),
                *(number(value) for value in (kinds.limit[i], kinds.room[i], kinds.travel[i])),
            ]
        )
        for i, slot in enumerate(slots)
    ]
    text = define(
        SCENE_KINDS=len(slots),
        SCENE_OBJECTS=int(kinds.counts.sum()),
        SCENE_MOST=max([1, *kinds.counts.tolist()]),
        SCENE_SLOTS=max(slots, default=-1) + 1,
        SCENE_VIEWS=maps.VIEWS,
        SCENE_PERIOD=kinds.period,
        SCENE_LAG=LAG,
        SCENE_SETTLED=maps.SETTLED,
        SCENE_LOST=maps.LOST,
        SCENE_VELOCITY=maps.VELOCITY,
        SCENE_MAGNETOMETER=maps.MAGNETOMETER,
        SCENE_EXACT=search.EXACT,
        SCENE_LOOSE=search.LOOSE,
        SCENE_APART=search.APART,
        SCENE_TRUSTED=search.TRUSTED,
        SCENE_EDGE=search.EDGE,
        SCENE_DRIFT=search.DRIFT,
        LIDAR_RANGE=LIDAR_RANGE,
        PATH_POINTS=len(paths.unit),
        PATH_HOLD=paths.hold,
        PATH_DISCOUNT=paths.discount,
        PATH_AVOIDED=len(declared.avoided),
        PATH_TARGETS=len(declared.targets),
        LEAST_SPREAD=LEAST_SPREAD,
        FARTHEST=FARTHEST,
    )
    text += "#define SCENE_TABLE " + (", \\\n    ".join(f"{{{row}}}" for row in rows) or "{0}") + "\n"
    text += array("path_unit", paths.unit, kind="float") + array("path_spread", paths.spread, kind="float")
    text += array("avoided_kinds", [part.kind for part in declared.avoided], kind="int")
    text += array("avoided_radii", [part.radius for part in declared.avoided])
    return text + array("target_kinds", list(declared.targets), kind="int")


def write_paths(builder: CBuilder, paths: PathEncoding, encoded: str, *, encoding_size: int) -> tuple[str, str]:
    """Return the function that notices an observation, and the statements that write the inputs from paths."""
    builder.flag("HAS_PATHS")
    network = builder.network(paths.network, "look-ahead, paths")
    places = paths.controllers * len(paths.unit) * 2
    builder.scratch.append(
        (
            "    int has_paths, met;\n    int64_t noticed; /* control steps of the episode, -1 for none */\n"
            "    double paths[BLEND_ARMS][PATH_POINTS][2];\n",
            "    w->has_paths = w->met = 0;\n    w->noticed = -1;\n",
        )
    )
    builder.scratch_size += 32 + 8 * places
    inputs = (
        f"    float *inputs = {encoded}(w, observation);\n"
        f"    if (!w->has_paths) {{\n        float predicted[{places}];\n        {network}(inputs, predicted);\n"
        "        place_paths(predicted, w->paths);\n        w->has_paths = 1;\n    }\n"
        f"    if (!w->met) {{\n        encode_paths(&s->scene, w->paths, inputs + {encoding_size});\n"
        "        w->met = 1;\n    }\n"
    )
    return NOTICE, inputs


def path_state_bytes(paths: PathEncoding) -> int:
    """Return the size of the map of an episode at most."""
    kinds = paths.declaration.kinds
    objects, slots = max(sum(kind.count for kind in kinds), 1), max([1, *(slot + 1 for slot in _slots(paths))])
    numbers = paths.declaration.observation_size + 6 + 2 * objects + slots * maps.VIEWS * (3 + LIDAR_BINS)
    return 8 * numbers + 4 * (3 + len(kinds) + slots + objects) + 16


def path_stack_bytes(paths: PathEncoding) -> int:
    """Return the stack at most that the map and the paths need."""
    objects, kinds = sum(kind.count for kind in paths.declaration.kinds), len(paths.declaration.kinds)
    locating = 8 * (6 * objects + 2 * kinds)
    searching = 8 * LIDAR_BINS * (maps.VIEWS + 3) + 16 * max([1, *(kind.count for kind in paths.declaration.kinds)])
    return max(locating, searching, 8 * paths.controllers * len(paths.unit)) + 512


def _slots(paths: PathEncoding) -> list[int]:
    """Return the slot of the views of every kind, -1 for a kind of one object, which needs none."""
    searched = [index for index, kind in enumerate(paths.declaration.kinds) if kind.count > 1]
    return [searched.index(i) if i in searched else -1 for i in range(len(paths.declaration.kinds))]
