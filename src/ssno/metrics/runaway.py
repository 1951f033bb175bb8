"""Where a forecast stops being one: the first frame that is not finite, or far larger than the fields it forecasts.

Axes: b trajectory, t frame, c field.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

NEVER = -1
FACTOR = 10.0
"""A forecast has run away when a value exceeds this many times the largest that its field is known to take."""


def largest(frames: Float[Tensor, "b t c *grid"]) -> Float[Tensor, "b c"]:
    """The largest absolute value of each field over all frames."""
    return frames.flatten(3).abs().amax((1, 3))


def runaway_step(prediction: Float[Tensor, "b t c *grid"], usual: Float[Tensor, "b c"]) -> Int[Tensor, " b"]:
    """The first frame of each trajectory with a value that is not finite or above `FACTOR` times `usual`; -1 if none.

    `usual` is the largest absolute value that each field is known to take. A field known only as zero has no scale, so
    only values that are not finite count there.
    """
    limit = torch.where(usual > 0, FACTOR * usual, torch.inf)[:, None]  # b 1 c
    size = prediction.flatten(3).abs().amax(3)
    gone = (~prediction.flatten(3).isfinite().all(3) | (size > limit)).any(2)  # b t
    return torch.where(gone.any(1), gone.int().argmax(1), NEVER)
