"""Scans on the equiangular grid of a sphere: around the rings, and over the poles.

Longitude is a circle, so rings are scanned with a `wrapped` kernel. Along colatitude there are two choices: `zero`,
nothing lies beyond a pole, as on a rectangle; or `pole`: beyond a pole lies the opposite meridian. Meridian lambda
followed by meridian lambda + pi backwards is a great circle of 2 (nlat - 1) points, each pole once,

    theta:   0 ... pi  (at lambda)   then   pi ... 0  (at lambda + pi)

and a scan over the poles is a wrapped scan of this circle, for every lambda, of which the first half is kept: one
matrix for the meridian and one for its opposite. North to south stays forward everywhere, so it commutes with turns
about the axis. Fields must be scalars; components of vectors would change sign. The row of a pole holds one point nlon
times, so it is averaged.

Axes: h channel, lat, lon, b frame; c point of a great circle.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.layers.block import DiscretisedKernels, GatedBlock
from ssno.layers.gate import gate
from ssno.layers.modes import ModeOptions
from ssno.layers.sweeps import BidirectionalScan, GridScan, Residual, around
from ssno.ssm.kernel import Boundary

Colatitude = Literal["pole", "zero"]


class SphereScan(GridScan):
    """Scan colatitude, then longitude, both ways: the spatial block of SS-NO on a sphere."""

    def __init__(
        self,
        channels: int,
        *,
        d_state: int = 64,
        residual: Residual = "sum",
        colatitude: Colatitude = "pole",
        options: ModeOptions | None = None,
    ):
        self.residual = residual  # first: the scans are made with it
        self.over_poles = colatitude == "pole"
        boundary: tuple[Boundary, Boundary] = ("wrapped" if self.over_poles else "zero", "wrapped")
        super().__init__(channels, axes=2, d_state=d_state, boundary=boundary, options=options)

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """The two scans; over the poles a line is a great circle."""
        nlat, nlon = grid
        return super().scans_on((2 * (nlat - 1) if self.over_poles else nlat, nlon), spacing)

    def sweep(
        self, field: Float[Tensor, "h lat lon b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h lat lon b"]:
        """Axis after axis."""
        for axis, (scan, known) in enumerate(zip(self.scans, weights, strict=True)):
            assert isinstance(scan, BidirectionalScan)
            if axis == 0 and self.over_poles:
                field = over_poles(scan, field, known)
            else:
                field = scan.lines(around(field, axis), known).view(field.shape)
        return field


def over_poles(
    scan: BidirectionalScan, field: Float[Tensor, "h lat lon b"], weights: DiscretisedKernels
) -> Float[Tensor, "h lat lon b"]:
    """A two-way scan of every meridian continued around its great circle, of which the first half is kept."""
    channels, nlat = field.shape[:2]
    circle = 2 * (nlat - 1)
    taps = weights.taps
    assert taps is not None, "states are never carried around a circle"
    ahead = torch.arange(nlat, device=field.device)[:, None] - torch.arange(circle, device=field.device)
    signs = [1 if direction == "forward" else -1 for direction in weights.directions]
    matrices = torch.stack([one[:, (sign * ahead) % circle] for one, sign in zip(taps, signs, strict=True)], dim=1)
    lines = great_circles(field).flatten(2)  # h c (lon b)
    y = torch.bmm(matrices.flatten(1, 2), lines).view(channels, len(signs), -1)
    residual = field.reshape(channels, -1)
    gated = gate(y, weights.mix, weights.bias, residual=residual, residual_weight=scan.residual_weight)
    return one_value_at_poles(gated.view(field.shape))


def great_circles(field: Float[Tensor, "h lat lon b"]) -> Float[Tensor, "h c lon b"]:
    """Every meridian, then the opposite one backwards: 2 (nlat - 1) points, each pole once."""
    if field.shape[2] % 2:
        raise ValueError(f"A scan over the poles needs an even number of longitudes, got {field.shape[2]}.")
    opposite = field[:, 1:-1].flip(1).roll(field.shape[2] // 2, dims=2)
    return torch.cat([field, opposite], dim=1)


def one_value_at_poles(field: Float[Tensor, "h lat lon b"]) -> Float[Tensor, "h lat lon b"]:
    """The rows of the poles replaced by their means."""
    poles = field[:, :: field.shape[1] - 1].mean(2, keepdim=True).expand(-1, -1, field.shape[2], -1)
    return torch.cat([poles[:, :1], field[:, 1:-1], poles[:, 1:]], dim=1)
