"""Points without data (obstacles, land): held at one value in forecasts, and left out of loss and errors.

Fields read as 0 at masked points (`ssno.data.trajectories`). In normalised units, too, forecasts and truth are set to 0
there, so that such points add nothing to a norm, neither above nor below the fraction of a relative error.

Axes: b trajectory, t frame, c field, then the grid.
"""

from jaxtyping import Bool, Float
from torch import Tensor

# Points without data (obstacles, land): held at one value in forecasts, and left out of loss and errors.

Outside = Bool[Tensor, "b t 1 *grid"] | None
"""Where there are no data; None if there are data everywhere."""


def hold(frames: Float[Tensor, "b t c *grid"], outside: Outside) -> Float[Tensor, "b t c *grid"]:
    """Frames that are 0 where there are no data."""
    return frames if outside is None else frames.masked_fill(outside, 0.0)


def find_outside(context: Float[Tensor, "b t k *grid"], channel: int | None) -> Outside:
    """Where known field number `channel` says that there are no data; noise or a coarser grid may have blurred it."""
    return None if channel is None else context[:, :, channel : channel + 1] > 0.5
