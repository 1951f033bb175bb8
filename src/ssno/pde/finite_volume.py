"""Second-order finite volumes for conservation laws on periodic grids: limited reconstruction, fluxes, rates.

    d/dt u_i = -(F_{i+1/2} - F_{i-1/2}) / dx        along every axis, F = flux(left, right) - diffusivity u_x

The states left and right of a face come from limited linear reconstruction in each cell (MUSCL) with the
monotonised-central limiter: the central slope, cut to twice the smaller one-sided slope, zero at extrema.
A `ConservationLaw` says what: the flux through a face between two states, and how fast signals cross cells. The
same code serves systems and two dimensions: states are (trajectory, channel, *cells) and everything takes the
dimension to work along. When to step and how far is in `ssno.pde.stepping`.

Only sums, products, minima and selections are used, each rounded on its own, so a trajectory does not depend on
its neighbours in the batch in any bit.

Axes: b trajectory, c channel, *cells space; along the working dimension a face array is one longer than the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.geometry import Axis

Cells = Float[Tensor, "b c *cells"]
Faces = Float[Tensor, "b c *faces"]
Padded = Float[Tensor, "b c *padded"]
Steps = Float[Tensor, "b c *steps"]


@runtime_checkable
class ConservationLaw(Protocol):
    """What flows: a numerical flux and its fastest signal."""

    def flux(self, left: Faces, right: Faces, dim: int) -> Faces:
        """Flux through faces normal to dimension `dim` (counted from the end) between two states."""

    def crossings(self, state: Cells, spacing: Sequence[float]) -> Float[Tensor, " b"]:
        """Cells crossed by the fastest signal per unit time, summed over axes; the largest over the grid."""


class BurgersLaw:
    """Flux u^2 / 2 with Roe's speed (left + right) / 2: upwind by the sign of the shock speed.

    Roe's flux ½[F(l) + F(r) - ½|l + r|(r - l)] is l^2/2 where l + r > 0 and r^2/2 elsewhere.
    """

    def flux(self, left: Faces, right: Faces, dim: int) -> Faces:
        upwind = torch.where(left + right > 0, left, right)
        return upwind.mul_(upwind).mul_(0.5)

    def crossings(self, state: Cells, spacing: Sequence[float]) -> Float[Tensor, " b"]:
        return state.abs().flatten(1).amax(dim=1) / spacing[0]


@dataclass(frozen=True)
class FiniteVolume:
    """A conservation law with constant diffusivity on a grid of cells: `rate` of change and stable `time_step`."""

    law: ConservationLaw
    axes: tuple[Axis, ...]
    diffusivity: float = 0.0
    cfl: float = 0.25

    def rate(self, state: Cells) -> Cells:
        """d/dt of every cell average."""
        total: Tensor | None = None
        for dim, axis in zip(range(-len(self.axes), 0), self.axes, strict=True):
            padded = wrap(state, dim, width=2)
            steps = differences(padded, dim)
            left, right = face_states(padded, steps, dim)
            flux = self.law.flux(left, right, dim)
            if self.diffusivity:
                across_faces = steps.narrow(dim, 1, axis.points + 1)
                flux.sub_(across_faces * (self.diffusivity / axis.spacing))
            change = differences(flux, dim).mul_(-1 / axis.spacing)
            total = change if total is None else total.add_(change)
        assert total is not None
        return total

    def time_step(self, state: Cells) -> Float[Tensor, " b"]:
        """cfl min(1 / crossings, dx^2 / (2 diffusivity)), for every trajectory its own."""
        spacing = [axis.spacing for axis in self.axes]
        longest = 1 / self.law.crossings(state, spacing)
        if self.diffusivity:
            longest = longest.clamp_max(0.5 / (self.diffusivity * sum(dx**-2 for dx in spacing)))
        return longest.mul_(self.cfl)


def wrap(field: Cells, dim: int, *, width: int) -> Padded:
    """Add `width` periodic images at both ends of a dimension."""
    size = field.shape[dim]
    return torch.cat([field.narrow(dim, size - width, width), field, field.narrow(dim, 0, width)], dim=dim)


def differences(field: Float[Tensor, "b c *any"], dim: int) -> Steps:
    """Each value minus the one before it; one shorter along `dim`."""
    size = field.shape[dim] - 1
    return field.narrow(dim, 1, size) - field.narrow(dim, 0, size)


def face_states(padded: Padded, steps: Steps, dim: int) -> tuple[Faces, Faces]:
    """Values on the two sides of every face, from cells with two images at each end and their `differences`."""
    faces = padded.shape[dim] - 3
    half = half_slopes(steps.narrow(dim, 0, faces + 1), steps.narrow(dim, 1, faces + 1))
    left = padded.narrow(dim, 1, faces) + half.narrow(dim, 0, faces)
    right = padded.narrow(dim, 2, faces) - half.narrow(dim, 1, faces)
    return left, right


def half_slopes(backward: Steps, forward: Steps) -> Steps:
    """Half the monotonised-central slope: the difference between a cell's face value and its average.

    Both differences positive: min(backward, forward, (backward + forward) / 4); both negative: the mirror image;
    otherwise zero. Written as a clamp between max(smaller, 0) and min(larger, 0).
    """
    ceiling = torch.minimum(backward, forward).clamp_min_(0)
    floor = torch.maximum(backward, forward).clamp_max_(0)
    return torch.add(backward, forward).mul_(0.25).clamp_(floor, ceiling)
