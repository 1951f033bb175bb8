"""Sweeps of a grid by state-space scans: the spatial blocks of SS-NO and of the variants it is compared with.

A two-way scan adds a forward and a backward S4D block (`ssno.layers.block`), so that each point depends on both sides:

    axis       scan each axis in turn, both ways: then every point depends on every other                 SS-NO
    one-way    x <- x + forward scan, along each axis in turn: a point depends on one side only
    flattened  the grid as one long line in row-major order, scanned both ways: x <- x + W z; then the same with the
               axes in another order, so that every axis is the fastest once (Vision Mamba style)
    parallel   two-way scans of all axes act on the same input and are summed, then a feed-forward network: x <- x + F z
               (F-FNO style)

Where the residual of a two-way scan goes is not settled by the paper. "sum": x + forward(x) + backward(x), which learns
at once and is the default; "path": each direction has its own, as the figure's caption reads; "none": as the listing.

Axes: h channel, l grid point, b line or frame; o and i: what comes before and after the scanned axis. Fields are
(h, *grid, b), a layout private to models. 1D, 2D and 3D are the same code.
"""

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.base import require_one_of
from ssno.layers.block import DiscretisedKernels, GatedBlock, gated_scan, scan_weights
from ssno.layers.gate import gate
from ssno.layers.memory import S4DBlock
from ssno.layers.modes import ModeOptions, fast_start
from ssno.layers.pointwise import ChannelMLP, Pointwise
from ssno.layers.selective import block_type
from ssno.layers.space import SpaceMesh
from ssno.layers.warp import Warp, warp_grid
from ssno.ssm.kernel import PERIODIC, Boundary

Residual = Literal["sum", "path", "none"]
"""Where the residual of a two-way scan is: around the sum, in each direction, or nowhere."""
RESIDUAL_WEIGHTS = {"sum": 1, "path": 2, "none": 0}


class PairedScan(nn.Module, abc.ABC):
    """Interface of scans that look both ways, with a block for each direction.

    They work by themselves in any `nn.Module`: `BidirectionalScan(64)(x)` maps (batch, 64, length) to the same shape.
    """

    ahead: GatedBlock
    back: GatedBlock

    @property
    def blocks(self) -> tuple[GatedBlock, ...]:
        """Forward, backward."""
        return self.ahead, self.back

    def forward(self, x: Float[Tensor, "b h l"], *, spacing: float = 1.0) -> Float[Tensor, "b h l"]:
        """Scan every sequence both ways. `spacing` is the grid spacing in units of the reference one."""
        (weights,) = scan_weights([(self.blocks, x.shape[-1], spacing)])
        return self.lines(x.permute(1, 2, 0)[:, None], weights)[:, 0].permute(2, 0, 1)

    @abc.abstractmethod
    def lines(self, x: Float[Tensor, "h o l i"], weights: DiscretisedKernels) -> Float[Tensor, "h o l i"]:
        """The same on a field with its channel first, along the axis between o and i."""


class BidirectionalScan(PairedScan):
    """Scan sequences forwards and backwards, each with its own S4D (or selective) block, and add the two.

    For sequences that repeat give `boundary="periodic"`. `options` set how modes start, by default `fast_start`.
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
        self.residual_weight = RESIDUAL_WEIGHTS[residual]
        block = block_type(options)
        self.ahead = block(channels, d_state=d_state, direction="forward", boundary=boundary, options=options)
        self.back = block(channels, d_state=d_state, direction="backward", boundary=boundary, options=options)

    def lines(self, x: Float[Tensor, "h o l i"], weights: DiscretisedKernels) -> Float[Tensor, "h o l i"]:
        """Both directions, gated and added, and the residual."""
        return gated_scan(x, weights, residual_weight=self.residual_weight)


def boundary_per_axis(boundary: Boundary | Sequence[Boundary], axes: int) -> tuple[Boundary, ...]:
    """One boundary for every axis, from one for all or one for each."""
    each = (boundary,) * axes if isinstance(boundary, str) else tuple(boundary)
    if len(each) != axes:
        raise ValueError(f"`boundary` must be one for all axes, or one per axis ({axes}), got {boundary!r}.")
    for one in each:
        require_one_of("boundary", one, get_args(Boundary))
    return each


class SpatialScan(nn.Module, abc.ABC):
    """What all spatial scans share: scans, and the weights that these need on a grid."""

    scans: nn.ModuleList

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """Blocks, length and spacing of every scan; `spacing` holds one relative grid spacing per axis."""
        return [
            (scan.blocks, length, step)  # type: ignore[misc]
            for scan, length, step in zip(self.scans, grid, spacing, strict=True)
        ]

    def forward(
        self,
        field: Float[Tensor, "h *grid b"],
        *,
        spacing: Sequence[float] | None = None,
        weights: Sequence[DiscretisedKernels] | None = None,
        space: SpaceMesh | None = None,
    ) -> Float[Tensor, "h *grid b"]:
        """Sweep a field, or a piece of one in `space`. `weights`, if known, are those of `scans_on`, in order."""
        if weights is None:
            grid = field.shape[1:-1] if space is None else space.whole_grid(field.shape[1:-1])
            weights = scan_weights(self.scans_on(grid, (1.0,) * len(grid) if spacing is None else spacing))
            weights = weights if space is None else space.over_pieces(weights)
        return self.scan_axes(field, weights)

    def combined(self, weights: Sequence[DiscretisedKernels]) -> Sequence[DiscretisedKernels]:
        """The weights as `scan_axes` uses them, where a block combines kernels before it scans."""
        return weights

    @abc.abstractmethod
    def scan_axes(
        self, field: Float[Tensor, "h *grid b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h *grid b"]:
        """Apply all scans."""


class GridScan(SpatialScan):
    """A scan for every axis of a grid, by default applied one after the other."""

    residual: Residual = "none"

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        boundary: Boundary | Sequence[Boundary] = "zero",
        options: ModeOptions | None = None,
    ):
        super().__init__()
        boundaries = boundary_per_axis(boundary, axes)
        options = options or fast_start(axes=axes, periodic=all(one in PERIODIC for one in boundaries))
        self.scans = nn.ModuleList(self.make_scans(channels, d_state, boundaries, options))

    def make_scans(
        self, channels: int, d_state: int, boundaries: Sequence[Boundary], options: ModeOptions
    ) -> list[nn.Module]:
        """One scan per axis."""
        return [self.scan(channels, d_state, boundary, options) for boundary in boundaries]

    def scan(self, channels: int, d_state: int, boundary: Boundary, options: ModeOptions) -> nn.Module:
        """A new scan of one axis."""
        return BidirectionalScan(channels, d_state=d_state, residual=self.residual, boundary=boundary, options=options)

    def scan_axes(
        self, field: Float[Tensor, "h *grid b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h *grid b"]:
        """Axis after axis."""
        for axis, (scan, known) in enumerate(zip(self.scans, weights, strict=True)):
            assert isinstance(scan, PairedScan)
            field = scan.lines(around(field, axis), known).view(field.shape)
        return field


class AxialScan(GridScan):
    """Scan every axis of a grid in turn, in both directions: the spatial block of SS-NO."""

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        residual: Residual = "sum",
        boundary: Boundary | Sequence[Boundary] = "zero",
        options: ModeOptions | None = None,
    ):
        self.residual = residual  # first: the scans are made with it
        super().__init__(channels, axes=axes, d_state=d_state, boundary=boundary, options=options)


class UnidirectionalScan(GridScan):
    """Scan every axis of a grid in turn, forwards only."""

    def scan(self, channels: int, d_state: int, boundary: Boundary, options: ModeOptions) -> GatedBlock:
        """Forwards."""
        return block_type(options)(channels, d_state=d_state, boundary=boundary, options=options)

    def scan_axes(
        self, field: Float[Tensor, "h *grid b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h *grid b"]:
        """Axis after axis."""
        for axis, known in enumerate(weights):
            field = gated_scan(around(field, axis), known, residual_weight=1).view(field.shape)
        return field


class RasterScan(GridScan):
    """Scan the whole grid as one line, once per axis order, both ways, mixing channels after each pass."""

    def __init__(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int = 64,
        boundary: Boundary | Sequence[Boundary] = "zero",
        options: ModeOptions | None = None,
    ):
        each = boundary_per_axis(boundary, axes)
        if len(set(each)) > 1:
            raise ValueError(f"One line through the whole grid has one `boundary`, got {each}. Give one for all axes.")
        # One line through the grid has no finer copies of itself: its points are neighbours along one axis only.
        options = options or fast_start(axes=axes, periodic=each[0] in PERIODIC)
        sampled = replace(options, resolution_transfer="resample")
        super().__init__(channels, axes=axes, d_state=d_state, boundary=boundary, options=sampled)
        self.mixings = nn.ModuleList(Pointwise(channels, channels) for _ in range(axes))

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """The whole grid as one line; a step is as long as the spacing of the fastest axis."""
        fastest = [spacing[self.order(turn)[-1]] for turn in range(len(self.scans))]
        return super().scans_on([math.prod(grid)] * len(fastest), fastest)

    def order(self, turn: int) -> list[int]:
        """Which axis comes where in a pass: row-major first, then the last axis in front."""
        return [(axis - turn) % len(self.scans) for axis in range(len(self.scans))]

    def scan_axes(
        self, field: Float[Tensor, "h *grid b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h *grid b"]:
        """Pass after pass over the flattened grid."""
        for turn, (scan, mixing, known) in enumerate(zip(self.scans, self.mixings, weights, strict=True)):
            assert isinstance(scan, BidirectionalScan)
            here, there = list(range(1, 1 + len(self.scans))), [1 + axis for axis in self.order(turn)]
            turned = field.movedim(there, here)
            scanned = scan.lines(turned.flatten(1, -2)[:, None], known)[:, 0]
            field = field + mixing(scanned).unflatten(1, turned.shape[1:-1]).movedim(here, there)
        return field


class FeedForward(nn.Module):
    """Two pointwise maps with a ReLU between them, then a normalisation over channels."""

    def __init__(self, channels: int):
        super().__init__()
        self.maps = ChannelMLP(channels, hidden=2 * channels, out_channels=channels, activation=functional.relu)
        self.norm = nn.LayerNorm(channels)

    def forward(self, features: Float[Tensor, "h *points"]) -> Float[Tensor, "h *points"]:
        return self.norm(self.maps(features).movedim(0, -1)).movedim(-1, 0)


class ParallelAxialScan(GridScan):
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
        boundary: Boundary | Sequence[Boundary] = "zero",
        options: ModeOptions | None = None,
        idle_forecast: bool = False,
    ):
        super().__init__(channels, axes=axes, d_state=d_state, boundary=boundary, options=options)
        self.backcast = FeedForward(channels)
        self.forecast = FeedForward(channels) if idle_forecast else None

    def scan_axes(
        self, field: Float[Tensor, "h *grid b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h *grid b"]:
        """All axes at once."""
        scanned = torch.zeros_like(field)
        for axis, (scan, known) in enumerate(zip(self.scans, weights, strict=True)):
            assert isinstance(scan, BidirectionalScan)
            scanned = scanned + scan.lines(around(field, axis), known).view(field.shape)
        return field + self.backcast(scanned)


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


# Products of scans: the spatial block of SS-NO-product.
#
#     y   = S_1 S_2 ... x,   S_a = kernel_ahead + kernel_back along axis a      one separable kernel for each channel
#     out = x + (L y + l) tanh(R y + r)                                         two pointwise maps of y, multiplied
#
# Each factor is a linear functional of the neighbourhood of a point, so for small values their product is what a
# quadratic term of an equation is (u u_x, u . grad w). The tanh keeps large values from growing faster than linearly:
# without it forecasts of Burgers' equation run away. SS-NO's gate is GLU(W GELU(scan)) once per direction instead.
# All axes are scanned before the product: in 2D one product per axis learns more slowly (docs/design/operator.md).
#
# Where a line is a circle (a periodic axis, a wall with its mirror image), both kernels are one circular kernel, so a
# scan costs half as much as SS-NO's, and the maps do.
#
# Maps start a tenth as large as linear layers usually do. A product of two numbers of size s has size s squared:
# started as usual, four blocks in a row overflow on the first step.
#
# Axes: h channel, o and i: what comes before and after the scanned axis, l grid point, b frame.

START = 0.1
"""How large the maps of a product start, in units of a linear layer's usual start."""


class ProductScan(PairedScan):
    """Scan sequences both ways, add the two, and add the product of two maps of that to the input.

    The blocks' `mix` are the maps, the left one forward and the right one backward: from h channels to h, not to 2h.
    A scan without `maps` is one of several axes whose scans are multiplied together.
    """

    def __init__(
        self,
        channels: int,
        *,
        d_state: int = 64,
        boundary: Boundary = "zero",
        options: ModeOptions | None = None,
        maps: bool = True,
    ):
        super().__init__()
        ahead = S4DBlock(channels, d_state=d_state, direction="forward", boundary=boundary, options=options)
        back = S4DBlock(channels, d_state=d_state, direction="backward", boundary=boundary, options=options)
        change = with_small_map if maps else without_map
        self.ahead, self.back = change(ahead), change(back)

    def lines(self, x: Float[Tensor, "h o l i"], weights: DiscretisedKernels) -> Float[Tensor, "h o l i"]:
        """x + (L y + l) tanh(R y + r)."""
        return multiplied(x, both_ways(x, weights), weights)


def both_ways(x: Float[Tensor, "h o l i"], weights: DiscretisedKernels) -> Float[Tensor, "h o l i"]:
    """The sum of both scans."""
    if weights.turned is not None:
        return weights.turned.through(partial(both_ways, weights=weights._replace(turned=None)), x)
    scanned = two_sided(weights).scan(x)
    return (scanned if scanned.shape[1] == 1 else scanned.sum(dim=1)).view(x.shape)


def multiplied(
    x: Float[Tensor, "h *points"], y: Float[Tensor, "h *points"], weights: DiscretisedKernels
) -> Float[Tensor, "h *points"]:
    """x + (L y + l) tanh(R y + r) with the maps of these weights."""
    flat, residual = y.reshape(x.shape[0], 1, -1), x.reshape(x.shape[0], -1)
    maps, shifts = weights.mix.flatten(0, 1)[None], weights.bias.flatten()[None]  # both maps as those of one gate
    return gate(flat, maps, shifts, residual=residual, residual_weight=1, product=True).view(x.shape)


def without_map(block: S4DBlock) -> S4DBlock:
    """The block as a kernel alone."""
    block.mix = None
    return block


@torch.no_grad()
def with_small_map(block: S4DBlock) -> S4DBlock:
    """The block with a new map of its channels that starts small."""
    channels = len(block.skip)
    block.mix = nn.Linear(channels, channels)
    block.mix.weight.mul_(START)
    return block


class ProductAxialScan(GridScan):
    """The product of two maps of a scan along every axis of a grid, one after the other.

    With `warp_heads`, features that learned displacements carry are added (`ssno.layers.warp`).
    """

    def __init__(self, channels: int, *, axes: int, warp_heads: int = 0, **options: Any):
        super().__init__(channels, axes=axes, **options)
        self.warp = Warp(channels, axes=axes, heads=warp_heads) if warp_heads else None

    def make_scans(
        self, channels: int, d_state: int, boundaries: Sequence[Boundary], options: ModeOptions
    ) -> list[nn.Module]:
        """One scan per axis; the first has the maps."""
        return [
            ProductScan(channels, d_state=d_state, boundary=boundary, options=options, maps=axis == 0)
            for axis, boundary in enumerate(boundaries)
        ]

    def combined(self, weights: Sequence[DiscretisedKernels]) -> Sequence[DiscretisedKernels]:
        """Both kernels of a line in one, where the line is a circle."""
        return [two_sided(known) for known in weights]

    def scan_axes(
        self, field: Float[Tensor, "h *grid b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h *grid b"]:
        """Scan all axes, then multiply and carry."""
        scanned = field
        for axis, known in enumerate(weights):
            scanned = both_ways(around(scanned, axis), known).view(field.shape)
        out = multiplied(field, scanned, weights[0])
        return out if self.warp is None else out + self.warp(field, scanned, warp_grid(field.shape[1:-1], weights))


def two_sided(weights: DiscretisedKernels) -> DiscretisedKernels:
    """Weights of a two-way scan with both kernels in one, where the line is a circle; elsewhere as they are."""
    if weights.taps is None or weights.carried is not None or not weights.periodic() or len(weights.blocks) == 1:
        return weights
    ahead, back = weights.taps
    ends = None if weights.ends is None else weights.ends.sum(1, keepdim=True)
    return weights._replace(blocks=weights.blocks[:1], taps=(ahead + back.flip(-1).roll(1, -1))[None], ends=ends)


# Which of these blocks a network has.

BlockKind = Literal["axial", "unidirectional", "raster", "parallel", "product"]
BLOCKS: dict[BlockKind, type[GridScan]] = {
    "axial": AxialScan,
    "unidirectional": UnidirectionalScan,
    "raster": RasterScan,
    "parallel": ParallelAxialScan,
    "product": ProductAxialScan,
}


@dataclass(frozen=True)
class BlockOptions:
    """The spatial block of a network: how it scans the axes of a grid."""

    kind: BlockKind = "axial"
    """Each axis in turn, both ways (axial) or forwards only (unidirectional); the flattened grid (raster); all axes
    from the same input (parallel); or products of two-way scans (product)."""
    residual: Residual = "sum"
    """Residual of an axial block: around the sum of both directions (sum), one per direction (path), or none."""
    idle_forecast: bool = True
    """Whether a parallel block owns the unused feed-forward network that the published parameter count contains."""
    warp_heads: int = 0
    """Learned displacements along which a product block also carries features, as a flow does; 0 for none."""

    def __post_init__(self) -> None:
        require_one_of("block.kind", self.kind, get_args(BlockKind))
        require_one_of("block.residual", self.residual, get_args(Residual))
        if self.residual != "sum" and self.kind != "axial":
            raise ValueError(f"`block.residual={self.residual!r}` needs block.kind='axial', got {self.kind!r}.")
        if not self.idle_forecast and self.kind != "parallel":
            raise ValueError(f"`block.idle_forecast=False` needs block.kind='parallel', got {self.kind!r}.")
        if self.warp_heads < 0 or (self.warp_heads and self.kind != "product"):
            raise ValueError(
                f"`block.warp_heads` must be a number of displacements (0 for none) of block.kind='product', got "
                f"{self.warp_heads} with block.kind={self.kind!r}."
            )

    @property
    def family(self) -> tuple[BlockKind, bool]:
        """What tells the variants of a model apart."""
        return self.kind, self.warp_heads > 0

    def build(
        self,
        channels: int,
        *,
        axes: int,
        d_state: int,
        boundary: Boundary | Sequence[Boundary],
        modes: ModeOptions,
    ) -> GridScan:
        """One block."""
        own: dict[str, Any] = {}
        if self.kind == "axial":
            own["residual"] = self.residual
        elif self.kind == "parallel":
            own["idle_forecast"] = self.idle_forecast
        elif self.kind == "product":
            own["warp_heads"] = self.warp_heads
        return BLOCKS[self.kind](channels, axes=axes, d_state=d_state, boundary=boundary, options=modes, **own)
