"""Training on several grids at once: one model, each batch on one of the grids, all grids equally often.

A grid is named by its points along the first axis; the other axes go in proportion. Fields are brought to it as a
coarser dataset would be read: every n-th point where that fits, and on periodic axes otherwise their waves up to what
the grid resolves. Weights refer to the finest of the grids, on which runs are also validated; coarser ones meet the
same kernels, cut to the waves that they resolve.

Batches come in rounds of as many as there are grids, each grid once in a round, in an order drawn from (seed, epoch,
round). A resumed run and every process of several therefore see the same.
"""

from collections.abc import Sequence

import torch

from ssno.data.noise import sample_generator
from ssno.data.reduction import coarse_points, fitting
from ssno.data.trajectories import Trajectories

GRID = 4  # keeps the key of this draw apart from those of order, forcing and place


def on_finest(data: Trajectories, grids: Sequence[int]) -> Trajectories:
    """The trajectories on the finest of the grids; as they are if none is named."""
    return on_grid(data, max(grids)) if grids and max(grids) != data.axes[0].points else data


def on_grids(data: Trajectories, grids: Sequence[int]) -> tuple[Trajectories, ...]:
    """The same trajectories on every grid; as they are if none is named."""
    return tuple(on_grid(data, points) for points in grids) or (data,)


def on_grid(data: Trajectories, points: int) -> Trajectories:
    """The trajectories on a grid with `points` points along the first axis, which must not be finer than theirs."""
    first = data.axes[0]
    if data.grid_type != "cartesian":
        raise ValueError(f"`grids` needs a box with a regular grid, but {data.name!r} is of type {data.grid_type!r}.")
    if points > first.points:
        raise ValueError(
            f"`grids` names {points} points along {first.name}, but the data have {first.points}: there is nothing to "
            f"learn between them. Read them on a finer grid (`data.points`), or leave {points} out."
        )
    try:
        grid = coarse_points(data.axes, points)
    except ValueError:
        shape = " x ".join(str(axis.points) for axis in data.axes)
        raise ValueError(f"`grids` names {points} points along {first.name}, which does not scale {shape}.") from None
    how = fitting(data.axes, grid)
    if how == "spectral" and not (data.mask is None and all(axis.periodic for axis in data.axes)):
        raise ValueError(
            f"`grids`: {points} does not divide the {first.points} points of {first.name}. Spectral resampling needs "
            f"periodic, unmasked data; choose divisors of {first.points}."
        )
    return data.select(points=grid, reduction=how)


def drawn_grid(count: int, *, seed: int, epoch: int, batch: int) -> int:
    """Which of `count` grids a batch of an epoch is on."""
    if count == 1:
        return 0
    turn, place = divmod(batch, count)
    return int(torch.randperm(count, generator=sample_generator(seed, epoch, turn, GRID))[place])
