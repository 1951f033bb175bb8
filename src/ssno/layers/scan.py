"""Two-way scans, and the sweep that applies them along every axis of a grid.

A two-way scan adds a forward and a backward S4D block, so that each point hears from both sides. A sweep scans each
grid axis in turn: after it every point has heard from every other, in 1D, 2D and 3D by the same code.

Where the residual goes is not settled by the paper. "sum": x + forward(x) + backward(x), which learns at once and is
the default; "path": each direction has its own, as the figure's caption reads; "none": as the listing reads.

Axes: h channel, l grid point, b line or frame; o and i: what comes before and after the scanned axis. Fields are
(h, *grid, b), a layout private to models.
"""

import math
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.bank import Request, WeightsPerScan
from ssno.layers.gated import ScanWeights, gated_scan
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
        return self.lines(x.permute(1, 2, 0)[:, None], spacing=spacing)[:, 0].permute(2, 0, 1)

    def lines(
        self, x: Float[Tensor, "h o l i"], *, spacing: float = 1.0, weights: ScanWeights | None = None
    ) -> Float[Tensor, "h o l i"]:
        """The same on a field with its channel first, along the axis between o and i."""
        return gated_scan(self.systems, x, spacing=spacing, weights=weights, copies_of_input=self.copies_of_input)

    @property
    def systems(self) -> tuple[S4DBlock, S4DBlock]:
        """Forward, backward."""
        return self.ahead, self.back


class PerAxisSweep(nn.Module):
    """What sweeps with one scan per grid axis share: `scans`, each with its `systems`."""

    scans: nn.ModuleList

    def requests(self, grid: Sequence[int], spacing: Sequence[float]) -> list[Request]:
        """The scans of this block on a grid; `spacing` holds one relative grid spacing per axis."""
        return [
            Request(scan.systems, length, step)  # type: ignore[arg-type]
            for scan, length, step in zip(self.scans, grid, spacing, strict=True)
        ]

    def turns(
        self, spacing: Sequence[float], weights: WeightsPerScan
    ) -> Iterator[tuple[int, nn.Module, float, ScanWeights | None]]:
        """Axis, scan, spacing and weights (None if they are to be made on the way), axis after axis."""
        known = each_or_none(weights, self.scans)
        for axis, (scan, step, found) in enumerate(zip(self.scans, spacing, known, strict=True)):
            yield axis, scan, step, found


class AxisSweep(PerAxisSweep):
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

    def forward(
        self,
        field: Float[Tensor, "h *grid b"],
        *,
        spacing: Sequence[float],
        weights: WeightsPerScan = None,
    ) -> Float[Tensor, "h *grid b"]:
        """Scan axis after axis. `weights`, if known already, are those of `requests`."""
        for axis, scan, step, known in self.turns(spacing, weights):
            assert isinstance(scan, TwoWayScan)
            field = scan.lines(around(field, axis), spacing=step, weights=known).view(field.shape)
        return field


def each_or_none(weights: WeightsPerScan, scans: Sized) -> Sequence[ScanWeights | None]:
    """Weights per scan; None for each if there are none."""
    return [None] * len(scans) if weights is None else weights


def around(field: Float[Tensor, "h *grid b"], axis: int) -> Float[Tensor, "h o l i"]:
    """A field seen from one grid axis: everything before it, the axis, everything after it."""
    before, length = math.prod(field.shape[1 : 1 + axis]), field.shape[1 + axis]
    return field.reshape(field.shape[0], before, length, -1)


def along(
    column_map: Callable[[Tensor], Tensor], field: Float[Tensor, "h *grid b"], *, axis: int
) -> Float[Tensor, "h *grid b"]:
    """Apply a map on (h, l, lines) to every line of `field` parallel to grid axis `axis`."""
    lines = field.movedim(1 + axis, 1)  # h l *rest b
    return column_map(lines.flatten(2)).unflatten(2, lines.shape[2:]).movedim(1, 1 + axis)
