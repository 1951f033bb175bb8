"""Other ways to sweep a grid, for the variants that the paper compares SS-NO with (`ssno.layers.scan` has its own).

    one-way    x <- x + forward scan, along each axis in turn: a point hears only from one side
    flattened  the grid as one long line in row-major order, scanned both ways: x <- x + W z; then the same with the
               axes in another order, so that every axis is the fastest once (Vision Mamba style)
    parallel   two-way scans of all axes act on the same input and are summed, then a feed-forward network: x <- x + F z
               (F-FNO style)

Axes: h channel, b frame. Fields are (h, *grid, b).
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.modes import ModeOptions
from ssno.layers.pointwise import Head, Pointwise
from ssno.layers.s4d import S4DBlock
from ssno.layers.scan import TwoWayScan, along
from ssno.ssm.kernel import Boundary


class OneWaySweep(nn.Module):
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

    def forward(self, field: Float[Tensor, "h *grid b"], *, spacing: Sequence[float]) -> Float[Tensor, "h *grid b"]:
        """Scan axis after axis; `spacing` holds one relative grid spacing per axis."""
        for axis, (scan, step) in enumerate(zip(self.scans, spacing, strict=True)):
            assert isinstance(scan, S4DBlock)
            field = field + along(partial(scan.columns, spacing=step), field, axis=axis)
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

    def forward(self, field: Float[Tensor, "h *grid b"], *, spacing: Sequence[float]) -> Float[Tensor, "h *grid b"]:
        """Scan line after line without lifting the pen. A step is as long as the spacing of the fastest axis."""
        axes = len(self.scans)
        for turn, (scan, mixing) in enumerate(zip(self.scans, self.mixings, strict=True)):
            assert isinstance(scan, TwoWayScan)
            order = [(axis - turn) % axes for axis in range(axes)]  # row-major first, then the last axis in front
            here, there = list(range(1, 1 + axes)), [1 + axis for axis in order]
            turned = field.movedim(there, here)
            scanned = scan.columns(turned.flatten(1, -2), spacing=spacing[order[-1]])
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


class ParallelSweep(nn.Module):
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

    def forward(self, field: Float[Tensor, "h *grid b"], *, spacing: Sequence[float]) -> Float[Tensor, "h *grid b"]:
        """Scan all axes at once; `spacing` holds one relative grid spacing per axis."""
        scanned = torch.zeros_like(field)
        for axis, (scan, step) in enumerate(zip(self.scans, spacing, strict=True)):
            assert isinstance(scan, TwoWayScan)
            scanned = scanned + along(partial(scan.columns, spacing=step), field, axis=axis)
        return field + self.backcast(scanned)
