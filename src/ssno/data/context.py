"""Choosing which fields are given at all times (context) and which are predicted.

Files state which of their fields are context: force and viscosity of torus-vis, the tracer of CE-RM, whatever does
not vary in time. A user may want fewer of them, others, or none.
"""

from collections.abc import Sequence
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from ssno.base.checks import did_you_mean
from ssno.data.errors import DataError
from ssno.data.normalise import chunks
from ssno.data.readers.blocks import Block, Part
from ssno.data.trajectories import Trajectories

NONE = ("none",)


def choose_context(data: Trajectories, names: Sequence[str]) -> Trajectories:
    """The same trajectories with exactly these context fields, in this order; ("none",) for none.

    A context field that is not named is left out; a predicted field that is named becomes context. `velocity` names all
    components of a vector, velocity_x and velocity_y.
    """
    every = (*data.fields, *data.context_fields)
    chosen: list[str] = []
    for name in () if tuple(names) == NONE else names:
        found = [field for field in every if field == name] or [f for f in every if f.startswith(f"{name}_")]
        if not found:
            raise DataError(
                f"{data.name!r} has no field {name!r}; it has {', '.join(every)}.{did_you_mean(name, every)}"
            )
        chosen += [field for field in found if field not in chosen]
    predicted = tuple(field for field in data.fields if field not in chosen)
    if not predicted:
        raise DataError(f"No field of {data.name!r} is left to predict: all of {', '.join(data.fields)} are context.")

    def part(stored: Part) -> Part:
        channels = [
            replace(block, channels=(channel,))
            for block in (*stored.state, *stored.context)
            for channel in block.channels
        ]
        by_name = dict(zip(every, channels, strict=True))
        return Part(_joined([by_name[name] for name in predicted]), _joined([by_name[name] for name in chosen]))

    return replace(data, fields=predicted, context_fields=tuple(chosen), parts=tuple(map(part, data.parts)))


def _joined(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Neighbouring channels of one array as one block again, so that they are read together."""
    joined: list[Block] = []
    for block in blocks:
        if joined and replace(joined[-1], channels=block.channels) == block:
            joined[-1] = replace(block, channels=(*joined[-1].channels, *block.channels))
        else:
            joined.append(block)
    return tuple(joined)


# Whether context fields are constant in time: none is stored with times, and a mask of missing values stands still.
#
# A mask that was made from values that are not finite (`Trajectories.mask_from_nan`) is stored nowhere, so it has to be
# read to see whether it moves.

FRAMES = 32  # read at once


def context_is_constant(data: Trajectories, *, given: int | None = None) -> bool:
    """Whether all context fields are the same in all frames. Frames from `given` on may hold nothing yet."""
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
