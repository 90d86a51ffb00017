"""The certificate: a claim, the bounds from a sample of episodes, and a description of the run, as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blendctl.atomic import write_atomically
from blendctl.certificates.claim import Bounds, Claim, bounds
from blendctl.errors import FileFormatError
from blendctl.file_reading import read_json_object, reading

FORMAT, VERSION = "blendctl-certificate", 1
MOST_EPISODES = 100_000  # reading a certificate recomputes its bounds, which takes a second
NOT_COVERED = (
    "Other environments: other layouts, tasks, sensors or physics than those the episodes were drawn from.",
    "Drift: a robot, world or controller that changes after the certificate; a blend that continues to learn.",
    "Single episodes and single states: the claim is about means and shares over episodes.",
    "Harm that is not part of the cost.",
    "A choice among certificates: if the episodes are drawn again until one passes, the confidence is lost.",
)


@dataclass(frozen=True)
class Certificate:
    """A claim and the evidence of the episodes; `about` describes driver, environment, digests and versions."""

    claim: Claim
    bounds: Bounds
    returns: tuple[float, ...]  # per episode
    costs: tuple[float, ...]
    sequential: bool = False  # the run could have stopped after every episode
    settings: int = 1  # settings of the dial among which this one was chosen
    about: Mapping[str, Any] = field(default_factory=dict)  # JSON data

    @property
    def passed(self) -> bool:
        """Whether the claim is proven with its confidence."""
        return self.bounds.p_value <= self.claim.error

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON data."""
        claim = asdict(self.claim) | {"claim": self.claim.words}
        facts = {"sequential": self.sequential, "settings": self.settings, "not_covered": list(NOT_COVERED)}
        head = {"format": FORMAT, "version": VERSION, "passed": self.passed}
        episodes = {"costs": list(self.costs), "returns": list(self.returns)}
        return {**head, **claim, **asdict(self.bounds), **facts, "digests": {}, **self.about, **episodes}

    def write(self, path: str | Path) -> None:
        """Write the certificate as JSON, atomically; the episodes are one line each for costs and returns."""
        lines = {f'"@{name}"': json.dumps(getattr(self, name)) for name in ("costs", "returns")}
        text = json.dumps(self.to_dict() | {"costs": "@costs", "returns": "@returns"}, indent=2) + "\n"
        for mark, line in lines.items():
            text = text.replace(mark, line)
        write_atomically(Path(path), text.encode())


def certify(
    returns: ArrayLike,
    costs: ArrayLike,
    claim: Claim,
    *,
    sequential: bool = False,
    settings: int = 1,
    about: Mapping[str, Any] | None = None,
) -> Certificate:
    """Judge a claim by independent episodes of one driver: returns (episodes,) and costs (episodes,).

    The driver must be the same in every episode: a blend is frozen, and starts every episode in the same state.

    >>> from blendctl.certificates import Claim
    >>> certificate = certify(np.full(200, 20.0), np.zeros(200), Claim(budget=25.0, cost_ceiling=1000.0))
    >>> certificate.passed, round(certificate.bounds.cost_mean_upper, 1), round(certificate.bounds.share_over_upper, 4)
    (True, 18.0, 0.0149)
    """
    judged = bounds(claim, returns, costs, sequential=sequential, settings=settings)
    listed, spent = (tuple(np.asarray(values, np.float64).tolist()) for values in (returns, costs))
    return Certificate(claim, judged, listed, spent, sequential=sequential, settings=settings, about=dict(about or {}))


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate; raise FileFormatError unless its bounds follow from its own episodes."""
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"cannot read the certificate {path}: it is not a file")
    with reading(path, "a certificate"):
        data = read_json_object(path)
        if data.get("format") != FORMAT:
            raise FileFormatError(f"{path} is not a certificate of `blendctl certify`")
        if data["version"] != VERSION:
            raise FileFormatError(f"{path} has format version {data['version']}, this blendctl reads version {VERSION}")
        if not isinstance(data.get("digests", {}), dict):
            raise ValueError("its digests are not a JSON object")
        ranges = data["return_range"]
        values = {name: data[name] for name in ("budget", "cost_ceiling", "share", "confidence")}
        claim = Claim(**values, return_range=None if ranges is None else (float(ranges[0]), float(ranges[1])))
        known = {"format", "version", "passed", "claim", "sequential", "settings", "not_covered", "costs", "returns"}
        known |= {one.name for kind in (Claim, Bounds) for one in fields(kind)}
        if len(data["costs"]) > MOST_EPISODES:
            raise ValueError(f"it has {len(data['costs'])} episodes; allowed: {MOST_EPISODES}")
        certificate = certify(
            data["returns"],
            data["costs"],
            claim,
            sequential=bool(data["sequential"]),
            settings=int(data["settings"]),
            about={name: value for name, value in data.items() if name not in known},
        )
        facts = asdict(certificate.bounds) | {"passed": certificate.passed, "claim": claim.words}
        for name, value in facts.items():
            if not _equal(data.get(name), value):
                raise FileFormatError(f"{path} was changed: {name} is {data.get(name)}, its episodes show {value}")
        return certificate


def _equal(there: Any, here: float | str | None) -> bool:
    if here is None or isinstance(here, bool | str) or isinstance(there, bool):
        return type(there) is type(here) and bool(there == here)
    return isinstance(there, int | float) and bool(np.isclose(there, here, rtol=1e-6, atol=1e-9))
