"""Two-way scans, and the sweep that applies them along every axis of a grid.

A two-way scan adds a forward and a backward S4D block, so that each point hears from both sides. A sweep scans each
grid axis in turn: after it every point has heard from every other, in 1D, 2D and 3D by the same code.

Where the residual goes is not settled by the paper. "sum": x + forward(x) + backward(x), which learns at once and is
the default; "path": each direction has its own, as the figure's caption reads; "none": as the listing reads.

Axes: h channel, l grid point, b line or frame. Fields are (h, *grid, b): private to models, see `ssno.layers.s4d`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.modes import ModeOptions, require_one_of
from ssno.layers.s4d import S4DBlock
from ssno.ssm.kernel import Boundary

Residual = Literal["sum", "path", "none"]


class TwoWayScan(nn.Module):
    """Scan sequences forwards and backwards, each with its own S4D block, and add the two.

    Works by itself in any `nn.Module`: `TwoWayScan(64)(x)` maps (batch, 64, length) to the same shape.
    """

    def __init__(
        self,
        channels: int,
        *,
        d_state: int = 64,
        residual: Residual = "sum",
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        require_one_of("residual", residual, get_args(Residual))
        require_one_of("boundary", boundary, get_args(Boundary))
        self.copies_of_input = {"sum": 1, "path": 2, "none": 0}[residual]
        self.ahead = S4DBlock(channels, d_state=d_state, direction="forward", boundary=boundary, options=options)
        self.back = S4DBlock(channels, d_state=d_state, direction="backward", boundary=boundary, options=options)

    def forward(self, x: Float[Tensor, "b h l"], *, spacing: float = 1.0) -> Float[Tensor, "b h l"]:
        """Scan every sequence both ways. `spacing` is the grid spacing in units of the reference one."""
        return self.columns(x.permute(1, 2, 0), spacing=spacing).permute(2, 0, 1)

    def columns(self, x: Float[Tensor, "h l b"], *, spacing: float = 1.0) -> Float[Tensor, "h l b"]:
        """The same on sequences stored as columns, (channel, position, line)."""
        scanned = self.ahead.columns(x, spacing=spacing) + self.back.columns(x, spacing=spacing)
        return scanned.add(x, alpha=self.copies_of_input) if self.copies_of_input else scanned


class AxisSweep(nn.Module):
    """Scan every axis of a grid in turn, in both directions: the spatial block of SS-NO."""

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        residual: Residual = "sum",
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        self.scans = nn.ModuleList(
            TwoWayScan(channels, d_state=d_state, residual=residual, boundary=boundary, options=options)
            for _ in range(axes)
        )

    def forward(self, field: Float[Tensor, "h *grid b"], *, spacing: Sequence[float]) -> Float[Tensor, "h *grid b"]:
        """Scan axis after axis; `spacing` holds one relative grid spacing per axis."""
        for axis, (scan, step) in enumerate(zip(self.scans, spacing, strict=True)):
            assert isinstance(scan, TwoWayScan)
            field = along(partial(scan.columns, spacing=step), field, axis=axis)
        return field


def along(
    column_map: Callable[[Tensor], Tensor], field: Float[Tensor, "h *grid b"], *, axis: int
) -> Float[Tensor, "h *grid b"]:
    """Apply a map on (h, l, lines) to every line of `field` parallel to grid axis `axis`."""
    lines = field.movedim(1 + axis, 1)  # h l *rest b
    return column_map(lines.flatten(2)).unflatten(2, lines.shape[2:]).movedim(1, 1 + axis)
