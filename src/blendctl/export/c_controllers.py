"""Write controllers as C: networks, classical controllers, and functions with a declared C form."""

from __future__ import annotations

from typing import Any

from blendctl.controllers import dynamic_window, push_direction
from blendctl.controllers.adapters import FunctionController, OnnxController, PredictController, ScriptController
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.classical import (
    SPEED,
    DynamicWindow,
    HeadingPID,
    PotentialField,
    PurePursuit,
    Push,
    Stop,
    VectorFieldHistogram,
)
from blendctl.controllers.free_direction import BLOCKED_WEIGHT, DIRECTIONS, KEEP_WEIGHT
from blendctl.controllers.network import NetworkController
from blendctl.controllers.observation_layout import YAW, ObservationLayout, lidar_decoder
from blendctl.controllers.remote import RemoteController
from blendctl.export.c_builder import CBuilder
from blendctl.export.c_text import array, comment, define, number
from blendctl.export.exportable import c_source
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE

CLASSICAL = (Stop, PurePursuit, HeadingPID, PotentialField, VectorFieldHistogram, DynamicWindow, Push)
PUSH_CONSTANTS = (
    "BEHIND", "AHEAD", "GOAL", "CONTACT", "EDGE", "ROBOT_CLEARANCE", "BOX_CLEARANCE", "LANE", "ON_LINE", "OFF_LINE",
    "SOON", "CENTRE", "RETREAT", "LOOK", "FAR",
)  # fmt: skip
WINDOW_CONSTANTS = (
    "COURSES", "WHEEL_LEVELS", "SPREAD", "NEAR_PRICE", "TIME_WORTH", "NEARBY", "TURNING", "EITHER_END",
    "SEEKING",
)  # fmt: skip
WAY_OUT = (
    "keep the blend in Python on the robot's computer and let it ask this controller as a remote one (blendctl serve)"
)


def write_controllers(builder: CBuilder, names: Any, controllers: Any, *, stochastic: bool) -> str:
    """Return the functions `propose` and `reset_controllers`; add what they need to the builder."""
    cases = []
    for arm, (name, controller) in enumerate(zip(names, controllers, strict=True)):
        body = _controller(builder, arm, name, controller, stochastic=stochastic)
        if body is not None:
            cases.append(f"    case {arm}: {{ /* {comment(name)} */\n{body}        break;\n    }}\n")
    constants = define(LIDAR_BINS=LIDAR_BINS, LIDAR_REACH=LIDAR_RANGE, CRUISING_SPEED=SPEED)
    lidars = [len(one.obstacles) for one in controllers if isinstance(one, VectorFieldHistogram)]
    pushed = [len(one.starts[0]) for one in controllers if isinstance(one, Push)]
    if lidars or pushed:
        objects = LIDAR_BINS * max(1, *lidars, *pushed)
        builder.controller_bytes = (4 if pushed else 2) * 8 * objects
        constants += define(
            HISTOGRAM_DIRECTIONS=DIRECTIONS, HISTOGRAM_OBJECTS=objects,
            KEEP_WEIGHT=KEEP_WEIGHT, BLOCKED_WEIGHT=BLOCKED_WEIGHT,
        )  # fmt: skip
    windows = [len(one.plan[0]) for one in controllers if isinstance(one, DynamicWindow)]
    if windows:
        objects = LIDAR_BINS * max(1, *windows)
        builder.controller_bytes = max(builder.controller_bytes, (3 * objects + 2 * LIDAR_BINS) * 8)
        fast, slow = dynamic_window.AIMS
        constants += define(
            WINDOW_OBJECTS=objects,
            WINDOW_FAST=fast,
            WINDOW_SLOW=slow,
            **{f"WINDOW_{name}": getattr(dynamic_window, name) for name in WINDOW_CONSTANTS},
        )
    if pushed:
        constants += define(**{f"PUSH_{name}": getattr(push_direction, name) for name in PUSH_CONSTANTS})
    builder.tables.insert(0, constants)
    resets = "".join(
        f"    s->integral[{arm}] = 0.0;\n" for arm, one in enumerate(controllers) if isinstance(one, HeadingPID)
    )
    return (
        "/* Ask a controller for its action. */\nstatic void propose(struct blend_state *s, struct work *w, int arm, "
        "const double *observation, double *action)\n{\n    (void)s;\n    (void)w;\n    (void)observation;\n"
        f"    switch (arm) {{\n{''.join(cases)}    default:\n        break;\n    }}\n}}\n\n"
        "/* Reset the controllers that have a state, at the end of an episode. */\n"
        f"static void reset_controllers(struct blend_state *s)\n{{\n    (void)s;\n{resets}}}\n"
    )


def _controller(builder: CBuilder, arm: int, name: str, controller: Controller, *, stochastic: bool) -> str | None:
    if type(controller) is NetworkController:
        return _network(builder, arm, name, controller, stochastic=stochastic)
    if type(controller) in CLASSICAL:
        return _classical(builder, arm, controller)
    source = c_source(controller.function if isinstance(controller, FunctionController) else controller)
    if source is not None:
        if isinstance(controller, Stateful):
            builder.problems.append(f'controller "{name}" has a reset(): it has a state, and its C form would lack it')
            return None
        return f"        {source.body}\n"
    builder.problems.append(f'controller "{name}" {_reason(controller)}; {WAY_OUT}')
    return None


def _reason(controller: Controller) -> str:
    if isinstance(controller, RemoteController):
        return "is remote: its code is in another process"
    if isinstance(controller, ScriptController):
        return "is a TorchScript program"
    if isinstance(controller, OnnxController):
        return "is an ONNX graph, which is not translated to C"
    if isinstance(controller, PredictController):
        return (
            "is a model of another library; save it as a controller file first (blendctl.controllers.read_checkpoint)"
        )
    if isinstance(controller, FunctionController):
        return "is a Python function without a C form; declare it with @blendctl.export.exportable"
    return f"is Python code, {type(controller).__name__}; give it a C form: blendctl.export.exportable"


def _network(builder: CBuilder, arm: int, name: str, controller: NetworkController, *, stochastic: bool) -> str:
    network = builder.network(controller.actor, f"actor of {name}")
    encoded = builder.encoding(controller.encoding)
    size = controller.action_size
    noise = ""
    if stochastic:
        builder.flag("BLEND_NORMALS")
        builder.tables.append(array(f"deviation_of_arm_{arm}", controller.std.astype(float), kind="double"))
        noise = f" + deviation_of_arm_{arm}[i] * normal(s->noise[{arm}])"
    return (
        f"        float mean[{size}];\n        int i;\n        {network}({encoded}(w, observation), mean);\n"
        f"        for (i = 0; i < {size}; i++)\n"
        f"            action[i] = limit(D(mean[i]){noise}, -1.0, 1.0);\n"
    )


def _classical(builder: CBuilder, arm: int, controller: Any) -> str:
    layout: ObservationLayout = controller.layout
    steering = layout.robot.steering
    speed_gain, turn_gain = steering.gains(gentle=isinstance(controller, Stop))
    forward_x, forward_y = layout.robot.forward
    numbers = (speed_gain, turn_gain, forward_x, forward_y)
    gains = ", ".join(map(number, numbers))
    table = f"static const struct steering steering_{arm} = {{{int(steering.wheels)}, {gains}}};\n"
    builder.flag("HAS_CLASSICAL")
    if isinstance(controller, Stop):
        builder.late_tables.append(table)
        return f"        steer(&steering_{arm}, observation, R(0), R(0), action);\n"
    decoder = lidar_decoder(layout.observation_size, layout.rings[controller.target])
    table += builder.encoding_table(f"decoder_{arm}", decoder)
    builder.flag("HAS_BEARING")
    builder.flags["DECODED_SIZE"] = decoder.size
    turn = number(layout.turn)
    start = "        real distance, angle;\n"
    bearing = f"        bearing_of(&decoder_{arm}, observation, {turn}, &distance, &angle);\n"
    if isinstance(controller, PurePursuit):
        builder.flag("HAS_PURSUIT")
        body = (
            start
            + bearing
            + f"        drive_towards(&steering_{arm}, observation, angle, R(CRUISING_SPEED), action);\n"
        )
    elif isinstance(controller, HeadingPID):
        builder.flag("HAS_PID")
        p, i, d = map(number, controller.gains)
        body = (
            f"        real distance, angle;\n        double *sum = &s->integral[{arm}];\n{bearing}"
            "        *sum = limit(0.95 * *sum + 0.05 * D(angle), -1.0, 1.0);\n"
            f"        steer(&steering_{arm}, observation, R(0.5 * CRUISING_SPEED),\n"
            f"            R({p}) * angle + R({i}) * R(*sum) - R({d}) * R(observation[{YAW}]), action);\n"
        )
    elif isinstance(controller, DynamicWindow):
        builder.flag("HAS_WINDOW")
        table += _window_table(arm, controller)
        body = f"        dynamic_window(&decoder_{arm}, &steering_{arm}, &window_{arm}, observation, {turn}, action);\n"
    elif isinstance(controller, Push):
        builder.flag("HAS_PUSH")
        around, solid = controller.starts
        table += builder.encoding_table(
            f"box_{arm}", lidar_decoder(layout.observation_size, layout.rings[controller.box])
        )
        table += array(f"around_{arm}", around, kind="int") + array(f"solid_{arm}", solid, kind="int")
        chosen = (controller.clearance, controller.speed, controller.approach)
        body = (
            f"        push_box(&decoder_{arm}, &box_{arm}, &steering_{arm}, observation, {turn}, "
            f"{', '.join(map(number, chosen))},\n"
            f"            around_{arm}, {len(around) - 1}, solid_{arm}, {len(solid)}, action);\n"
        )
    else:
        starts = [layout.rings[ring] for ring in controller.obstacles]
        table += array(f"obstacles_{arm}", starts, kind="int")
        if isinstance(controller, PotentialField):
            builder.flag("HAS_FIELD")
            function, settings = "potential_field", [controller.influence, controller.strength]
        else:
            builder.flag("HAS_HISTOGRAM")
            function, settings = "vector_field_histogram", [controller.clearance, controller.look, controller.speed]
        body = (
            f"        {function}(&decoder_{arm}, &steering_{arm}, observation, {turn}, "
            f"{', '.join(map(number, settings))},\n            obstacles_{arm}, {len(starts)}, action);\n"
        )
    builder.late_tables.append(table)
    return body


def _window_table(arm: int, controller: DynamicWindow) -> str:
    starts, radii, own, reach = controller.plan
    robot = controller.layout.robot
    wheels = robot.steering.wheels
    step, early, steps, ways = dynamic_window.WHEELED_PLAN if wheels else dynamic_window.SLIDING_PLAN
    settings = (reach, controller.price, controller.margin, *controller.motion, *controller.gains, robot.saturation)
    names = ("starts", "radii", "own")
    if len(starts):
        arrays = "".join(
            array(f"window_{name}_{arm}", values, kind="int" if name == "starts" else "double")
            for name, values in zip(names, (starts, radii, own), strict=True)
        )
        pointers = ", ".join(f"window_{name}_{arm}" for name in names)
    else:
        arrays, pointers = "", "0, 0, 0"
    return (
        f"{arrays}static const struct window window_{arm} = {{\n    {', '.join(map(number, settings))},\n"
        f"    {number(step)}, {early}, {steps - early}, {ways}, {pointers}, {len(starts)}}};\n"
    )
