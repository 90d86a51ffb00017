"""The status of a running blender as text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

COUNTERS = {
    "requests": "Requests for an action.",
    "steps": "Control steps.",
    "stages": "Decisions.",
    "episodes": "Episodes that have ended.",
    "switches": "Decisions that changed the controller.",
    "safe_actions": "Decisions at which no controller was fit.",
    "events": "Failures and alarms.",
    "learned": "Stages that the learner was updated with.",
}
PER_CONTROLLER = {"driven": "Stages that a controller drove.", "failures": "Failures of a controller."}
GAUGES: dict[str, tuple[str, str, Callable[[Any], int]]] = {  # name -> help, part of the status, its number
    "drift_alarm": (
        "Feedback was shown to contradict its estimates.", "feedback", lambda one: one.get("alarm") is not None,
    ),
    "bound_contradicted": ("Feedback contradicts the bound.", "bound", lambda bound: bound == "contradicted"),
    "guard_fallen_back": (
        "The guard has selected one controller.", "guard", lambda guard: guard.get("fallen_back_to") is not None,
    ),
    "certificate_alarms": (
        "Alarms of the certificate's monitor.", "certificate", lambda monitor: len(monitor.get("alarms", ())),
    ),
    "warnings": ("Warnings of the run.", "warnings", len),
}  # fmt: skip


def prometheus_text(status: Mapping[str, Any]) -> str:
    """Return the data of `Blender.status()` in the text format of Prometheus, version 0.0.4.

    >>> print(prometheus_text({"steps": 3, "failures": {"fast": 1}}), end="")
    # HELP blendctl_steps_total Control steps.
    # TYPE blendctl_steps_total counter
    blendctl_steps_total 3
    # HELP blendctl_failures_total Failures of a controller.
    # TYPE blendctl_failures_total counter
    blendctl_failures_total{controller="fast"} 1
    """
    return "".join(f"{line}\n" for line in _lines(status))


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    for name, words in COUNTERS.items():
        if name in status:
            yield from _metric(f"{name}_total", words, "counter", {"": status[name]})
    for name, words in PER_CONTROLLER.items():
        values = status.get(name)
        if isinstance(values, Mapping):
            rows = {f'{{controller="{_escaped(str(one))}"}}': value for one, value in values.items()}
            yield from _metric(f"{name}_total", words, "counter", rows)
    times = status.get("act_seconds")
    if times:
        rows = {f'{{quantile="{quantile}"}}': value for quantile, value in times.items()}
        yield from _metric("act_seconds", "Time of the latest actions, quantiles.", "gauge", rows)
    if status.get("loss_bound") is not None:
        yield from _metric("loss_bound", "Upper bound of the average loss.", "gauge", {"": status["loss_bound"]})
    feedback = status.get("feedback") or {}
    if "surprises" in feedback:
        words = "Stages whose feedback was too far from its estimate."
        yield from _metric("surprises_total", words, "counter", {"": feedback["surprises"]})
    for name in ("estimated", "observed"):
        if feedback.get(name):
            rows = {f'{{objective="{_escaped(str(one))}"}}': value for one, value in feedback[name].items()}
            yield from _metric(f"{name}_feedback", f"Mean {name} feedback of a stage.", "gauge", rows)
    for name, (words, part, number) in GAUGES.items():
        if status.get(part) is not None:
            yield from _metric(name, words, "gauge", {"": int(number(status[part]))})


def _metric(name: str, words: str, kind: str, rows: Mapping[str, float]) -> Iterator[str]:
    full = f"blendctl_{name}"
    yield f"# HELP {full} {words}"
    yield f"# TYPE {full} {kind}"
    for label, value in rows.items():
        yield f"{full}{label} {value:.9g}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
