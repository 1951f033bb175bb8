"""Axes of a grid from what users and files give: lengths, or a list of coordinates.

Files store coordinates; we store (length, points, offset), so a coordinate array must be uniform. A periodic
axis of N points spaced dx has length N dx, whether the points are nodes (offset 0) or cell centres (offset
dx/2).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ssno.base.checks import did_you_mean
from ssno.data.errors import DataError
from ssno.pde.problems.problem import Axis

Periodic = bool | tuple[str, ...] | tuple[bool, ...]
"""Which axes repeat: all or none, their names, or a flag for each."""
UNIFORM = 1e-3  # of a spacing: coordinates stored in float32, or as rounded decimals, still count as uniform


def box(
    names: Sequence[str],
    points: Sequence[int],
    *,
    lengths: Sequence[float | int] | None = None,
    offsets: Sequence[float | int] | None = None,
    periodic: Periodic | Sequence[bool] | str = True,
) -> tuple[Axis, ...]:
    """Axes of a box with the given lengths, 1 each if not given."""
    for label, values in (("lengths", lengths), ("offsets", offsets)):
        if values is not None and len(values) != len(names):
            raise DataError(f"`{label}` must have one number per space axis {tuple(names)}, got {tuple(values)}.")
    ones, zeros = [1.0] * len(names), [0.0] * len(names)
    columns = zip(names, points, lengths or ones, offsets or zeros, periodic_flags(periodic, names), strict=True)
    return tuple(Axis(name, float(length), count, float(offset), flag) for name, count, length, offset, flag in columns)


def periodic_flags(periodic: Periodic | Sequence[bool] | str, names: Sequence[str]) -> tuple[bool, ...]:
    """Whether each of the axes called `names` repeats."""
    if isinstance(periodic, bool):
        return (periodic,) * len(names)
    chosen = (periodic,) if isinstance(periodic, str) else tuple(periodic)
    if chosen in (("all",), ("none",)):
        return (chosen == ("all",),) * len(names)
    if all(isinstance(flag, bool) for flag in chosen) and len(chosen) == len(names):
        return chosen  # type: ignore[return-value]
    if unknown := [name for name in chosen if name not in names]:
        raise DataError(
            f"`periodic` must name axes among {', '.join(names)}, say all or none, or have a flag for each of them; "
            f"got {chosen}.{did_you_mean(str(unknown[0]), names)}"
        )
    return tuple(name in chosen for name in names)


def uniform_step(values: Float[np.ndarray, " l"], *, what: str) -> float:
    """The constant difference of an increasing array, or an error that names `what`."""
    if not np.isfinite(values).all():
        raise DataError(f"{what} contains values that are not finite.")
    if len(values) < 2:
        raise DataError(f"{what} has {len(values)} value, at least 2 are needed for a spacing.")
    step = float(values[-1] - values[0]) / (len(values) - 1)
    if step <= 0:
        raise DataError(f"{what} must increase, got {values[0]:.6g} ... {values[-1]:.6g}.")
    worst = float(np.abs(values - values[0] - step * np.arange(len(values))).max())
    # Single-precision coordinates far from zero carry an error that does not shrink with the spacing.
    if worst > UNIFORM * step + 4 * float(np.finfo(np.float32).eps) * float(np.abs(values).max()):
        raise DataError(f"{what} is not uniform: it departs from equal spacing {step:.6g} by {worst:.3g}.")
    return step


def axis_from_coordinates(
    name: str, coordinates: Float[np.ndarray, " l"], *, periodic: bool = True, what: str | None = None
) -> Axis:
    """An axis through stored coordinates, taken as nodes or cell centres as they come."""
    step = uniform_step(coordinates, what=what or f"coordinate {name!r}")
    points = len(coordinates)
    return Axis(name, length=_round(step * points), points=points, offset=_round(coordinates[0]), periodic=periodic)


def _round(value: float) -> float:
    """Seven digits are all that a float32 coordinate carries; 0.99999994 was meant to be 1."""
    return float(f"{value:.7g}")
