"""Any model on a grid that is several times as fine as its own: the interleaved copies of its grid, each by itself.

With copies r, point l of an axis belongs to copy l mod r. SS-NO does this inside its scans (`ssno.ssm.transfer`); here
the whole network sees one copy at a time, so that every model can be compared on equal terms.

Axes: b trajectory, t frame, c field, then the grid.
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from ssno.forecasting.forecaster import Forecaster


class OnSublattices(nn.Module):
    """A model that streams, on a grid whose axes fall into `copies` copies of its own each."""

    def __init__(self, model: Any, *, copies: int, n_dims: int):
        super().__init__()
        self.model, self.copies, self.n_dims = model, copies, n_dims
        self.frames_as_channels = getattr(model, "frames_as_channels", 0)

    def forward(self, frames: Float[Tensor, "b t c *fine"], *, spacing: Any = None) -> Float[Tensor, "b s c *fine"]:
        """All slots."""
        return self.joined(self.model(self.split(frames)))

    def start(self, frames: Float[Tensor, "b t c *fine"], *, spacing: Any = None) -> Any:
        """Begin streaming."""
        return self.model.start(self.split(frames))

    def step(self, frame: Float[Tensor, "b c *fine"], state: Any) -> tuple[Float[Tensor, "b d *fine"], Any]:
        """One step."""
        answer, state = self.model.step(self.split(frame[:, None])[:, 0], state)
        return self.joined(answer[:, None])[:, 0], state

    def split(self, frames: Float[Tensor, "b t c *fine"]) -> Float[Tensor, "n t c *grid"]:
        """Every copy as a trajectory of its own."""
        for dim in range(3, 3 + self.n_dims):
            frames = frames.unflatten(dim, (-1, self.copies)).movedim(dim + 1, 0).flatten(0, 1)
        return frames

    def joined(self, frames: Float[Tensor, "n t c *grid"]) -> Float[Tensor, "b t c *fine"]:
        """The inverse of `split`."""
        for dim in reversed(range(3, 3 + self.n_dims)):
            frames = frames.unflatten(0, (self.copies, -1)).movedim(0, dim + 1).flatten(dim, dim + 1)
        return frames


def on_sublattices(forecaster: Forecaster, *, copies: int, spacing: Sequence[float]) -> Forecaster:
    """The forecaster on a grid of this spacing, `copies` times as fine as its own."""
    return Forecaster(
        OnSublattices(forecaster.model, copies=copies, n_dims=len(spacing)),
        normalisers=forecaster.normalisers,
        increment=forecaster.increment,
        window=forecaster.window,
        alignment=forecaster.alignment,
        spacing=spacing,
        mask=forecaster.mask,
    ).eval()
