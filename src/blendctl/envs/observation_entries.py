"""The numbers of an observation by name, for any Gymnasium space that consists of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

MOST = 512  # numbers of an observation; larger ones are pictures or point clouds


class ObservationEntries:
    """The numbers of the observations of a space; none if it has other parts, or more than `MOST` numbers.

    >>> entries = ObservationEntries(spaces.Dict({"speed": spaces.Box(-1, 1, (1,)), "wheel": spaces.Box(-1, 1, (2,))}))
    >>> entries.names, entries.values({"speed": [0.5], "wheel": [1.0, 0.0]})
    (['speed', 'wheel 0', 'wheel 1'], array([0.5, 1. , 0. ]))
    >>> ObservationEntries(spaces.Box(0, 1, (3,))).names
    ['0', '1', '2']
    """

    def __init__(self, space: Any) -> None:
        self._space = space
        self.names = ["0" if name == "" else name for name in _names(space) or ()]

    def values(self, observation: Any) -> NDArray[np.float64]:
        """Return the numbers in the order of `names`; NaN if the observation does not fit the space."""
        try:
            values = np.concatenate(_values(self._space, observation)) if self.names else np.zeros(0)
        except (TypeError, ValueError, KeyError, IndexError):
            values = np.zeros(0)
        return values if len(values) == len(self.names) else np.full(len(self.names), np.nan)


def _names(space: Any) -> list[str] | None:
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        shape = space.shape
        if int(np.prod(shape)) > MOST:
            return None
        single = int(np.prod(shape)) == 1
        return [""] if single else [",".join(map(str, index)) for index in np.ndindex(*shape)]
    if isinstance(space, spaces.Discrete):
        return [""]
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    names: list[str] = []
    for key, part in _parts(space).items():
        inner = _names(part)
        if inner is None:
            return None
        names += [f"{key} {name}".rstrip() for name in inner]
    return names if len(names) <= MOST else None


def _values(space: Any, observation: Any) -> list[NDArray[np.float64]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return [row for key, part in _parts(space).items() for row in _values(part, observation[key])]
    return [np.asarray(observation, np.float64).ravel()]


def _parts(space: Any) -> Mapping[Any, Any]:
    return space.spaces if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
