"""Whether context fields are constant in time: none is stored with times, and a mask of missing values stands still.

A mask that was made from values that are not finite (`Trajectories.mask_from_nan`) is stored nowhere, so it has to be
read to see whether it moves.
"""

from jaxtyping import Float
from torch import Tensor

from ssno.data.moments import chunks
from ssno.data.trajectories import Trajectories

FRAMES = 32  # read at once


def context_is_constant(data: Trajectories, *, given: int | None = None) -> bool:
    """Whether all known fields are the same in all frames. Frames from `given` on may hold nothing yet."""
    if any(block.pattern.axis("time") is not None for part in data.parts for block in part.context):
        return False
    return not data.mask_from_nan or _stands_still(data, given=len(data.times) if given is None else given)


def _stands_still(data: Trajectories, *, given: int) -> bool:
    for rows in chunks(data.select(time_index=slice(0, FRAMES))):
        first = _masks(data, rows, slice(0, 1))
        for start in range(0, len(data.times), FRAMES):
            masks = _masks(data, rows, slice(start, start + FRAMES))
            moved = (masks != first).flatten(2).any(2)  # n t
            empty = masks.flatten(2).all(2)
            empty[:, : max(0, given - start)] = False
            if (moved & ~empty).any():
                return False
    return True


def _masks(data: Trajectories, rows: slice, frames: slice) -> Float[Tensor, "n t *grid"]:
    return data.select(time_index=frames).read(rows, finite=False).context[:, :, data.mask_channel]
