"""Other ways to sweep a grid, for the variants that the paper compares SS-NO with (`ssno.layers.scan` has its own).

    one-way    x <- x + forward scan, along each axis in turn: a point hears only from one side
    flattened  the grid as one long line in row-major order, scanned both ways: x <- x + W z; then the same with the
               axes in another order, so that every axis is the fastest once (Vision Mamba style)
    parallel   two-way scans of all axes act on the same input and are summed, then a feed-forward network: x <- x + F z
               (F-FNO style)

Axes: h channel, b frame. Fields are (h, *grid, b).
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.bank import Request, WeightsPerScan
from ssno.layers.gated import gated_scan
from ssno.layers.head import Head
from ssno.layers.modes import ModeOptions
from ssno.layers.pointwise import Pointwise
from ssno.layers.s4d import S4DBlock
from ssno.layers.scan import PerAxisSweep, TwoWayScan, around, each_or_none
from ssno.ssm.kernel import Boundary


class OneWaySweep(PerAxisSweep):
    """Scan every axis of a grid in turn, forwards only."""

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        self.scans = nn.ModuleList(
            S4DBlock(channels, d_state=d_state, boundary=boundary, options=options) for _ in range(axes)
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
            assert isinstance(scan, S4DBlock)
            lines = around(field, axis)
            field = gated_scan(scan.systems, lines, spacing=step, weights=known, copies_of_input=1).view(field.shape)
        return field


class FlattenedSweep(nn.Module):
    """Scan the whole grid as one line, once per axis order, both ways, mixing channels after each pass."""

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        self.scans = nn.ModuleList(
            TwoWayScan(channels, d_state=d_state, residual="none", boundary=boundary, options=options)
            for _ in range(axes)
        )
        self.mixings = nn.ModuleList(Pointwise(channels, channels) for _ in range(axes))

    def requests(self, grid: Sequence[int], spacing: Sequence[float]) -> list[Request]:
        """The scans of this block on a grid. A step is as long as the spacing of the fastest axis."""
        return [
            Request(scan.systems, math.prod(grid), spacing[self.order(turn)[-1]])  # type: ignore[arg-type]
            for turn, scan in enumerate(self.scans)
        ]

    def order(self, turn: int) -> list[int]:
        """Which axis comes where in a pass: row-major first, then the last axis in front."""
        return [(axis - turn) % len(self.scans) for axis in range(len(self.scans))]

    def forward(
        self,
        field: Float[Tensor, "h *grid b"],
        *,
        spacing: Sequence[float],
        weights: WeightsPerScan = None,
    ) -> Float[Tensor, "h *grid b"]:
        """Scan line after line without lifting the pen. `weights`, if known already, are those of `requests`."""
        for turn, (scan, mixing, known) in enumerate(
            zip(self.scans, self.mixings, each_or_none(weights, self.scans), strict=True)
        ):
            assert isinstance(scan, TwoWayScan)
            here, there = list(range(1, 1 + len(self.scans))), [1 + axis for axis in self.order(turn)]
            turned = field.movedim(there, here)
            line = turned.flatten(1, -2)[:, None]
            scanned = scan.lines(line, spacing=spacing[self.order(turn)[-1]], weights=known)[:, 0]
            field = field + mixing(scanned).unflatten(1, turned.shape[1:-1]).movedim(here, there)
        return field


class FeedForward(nn.Module):
    """Two pointwise maps with a ReLU between them, then a normalisation over channels."""

    def __init__(self, channels: int, *, expansion: int = 2):
        super().__init__()
        self.maps = Head(channels, hidden=expansion * channels, out_channels=channels, activation=functional.relu)
        self.norm = nn.LayerNorm(channels)

    def forward(self, features: Float[Tensor, "h *points"]) -> Float[Tensor, "h *points"]:
        return self.norm(self.maps(features).movedim(0, -1)).movedim(-1, 0)


class ParallelSweep(PerAxisSweep):
    """Scan all axes of a grid from the same input, both ways, add the results, and refine them pointwise.

    With `idle_forecast` the block owns a second feed-forward network that nothing uses. The published number of
    parameters contains it: the layer that the variant was modelled on has one for another purpose.
    """

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
        idle_forecast: bool = False,
    ):
        super().__init__()
        self.scans = nn.ModuleList(
            TwoWayScan(channels, d_state=d_state, residual="none", boundary=boundary, options=options)
            for _ in range(axes)
        )
        self.backcast = FeedForward(channels)
        self.forecast = FeedForward(channels) if idle_forecast else None

    def forward(
        self,
        field: Float[Tensor, "h *grid b"],
        *,
        spacing: Sequence[float],
        weights: WeightsPerScan = None,
    ) -> Float[Tensor, "h *grid b"]:
        """Scan all axes at once. `weights`, if known already, are those of `requests`."""
        scanned = torch.zeros_like(field)
        for axis, scan, step, known in self.turns(spacing, weights):
            assert isinstance(scan, TwoWayScan)
            scanned = scanned + scan.lines(around(field, axis), spacing=step, weights=known).view(field.shape)
        return field + self.backcast(scanned)
