"""How large a trajectory is: 4 bytes (float32) times frames, channels and points, known fields counted as varying."""

from collections.abc import Sequence
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np

from ssno.pde.problems.problem import Axis


@runtime_checkable
class Described(Protocol):
    """Anything that says what its trajectories look like: a problem, a layout, a set of trajectories."""

    @property
    def fields(self) -> tuple[str, ...]: ...

    @property
    def context_fields(self) -> tuple[str, ...]: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def axes(self) -> Sequence[Axis]: ...


def trajectory_bytes(described: Described) -> int:
    """Bytes of one trajectory before compression."""
    channels = len(described.fields) + len(described.context_fields)
    return 4 * len(described.times) * channels * prod(axis.points for axis in described.axes)
