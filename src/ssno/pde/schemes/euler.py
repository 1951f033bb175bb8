"""Compressible Euler equations on a periodic grid of cells: HLLC-MUSCL, with or without gravity.

    rho_t + div(rho v) = 0,      (rho v)_t + div(rho v v + p) = -rho grad phi
    E_t + div((E + p) v) = -rho v . grad phi,      (rho c)_t + div(rho c v) = 0

Method of lines on cell averages: primitive variables are reconstructed linearly in each cell with the monotonised-
central limiter (`ssno.pde.schemes.finite_volume`), faces get the HLLC flux (`ssno.pde.schemes.hllc`), all directions at
once, and time advances by the strong-stability-preserving two-stage method (`heun`).

Gravity, a given potential phi constant in time, is balanced. With w_{i+1/2} = (rho_i + rho_{i+1}) / 2 (phi_{i+1} -
phi_i), the weight between two cells, a gas at rest with p_{i+1} - p_i = -w_{i+1/2} stays at rest to rounding: pressure
is carried from the cells to the face by half the weight, only what differs from that is limited, and the source is

    momentum  -(w_{i+1/2} + w_{i-1/2}) / 2 dx,      energy  -(F_{i+1/2} dphi_{i+1/2} + F_{i-1/2} dphi_{i-1/2}) / 2 dx

with F the mass flux. Every operation is rounded on its own (no fused sums), so a trajectory does not depend on its
neighbours in the batch in any bit. Axes: b trajectory, 5 variables, x, y cells; phi is (b, 1, x, y).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.equations.gas import Conserved, sound_speed, to_primitive
from ssno.pde.problems.problem import Axis
from ssno.pde.schemes.finite_volume import differences, face_states, wrap
from ssno.pde.schemes.hllc import hllc_flux

PRESSURE = 3


@runtime_checkable
class Beyond(Protocol):
    """What lies beyond the edges: adds `width` cells at both ends of a dimension."""

    def __call__(self, field: Tensor, dim: int, *, width: int) -> Tensor: ...


@dataclass(frozen=True)
class Euler:
    """The scheme: `rate` of change of conserved cell averages and the stable `time_step`, per trajectory.

    With gravity a state has a sixth channel, the potential at the cell's centre, which never changes. The grid is
    periodic unless `beyond` says otherwise (`ssno.pde.quarter_turns`).
    """

    axes: tuple[Axis, Axis]
    gamma: float = 1.4
    cfl: float = 0.4
    gravity: bool = False
    beyond: Beyond = wrap

    def rate(self, state: Float[Tensor, "b c x y"]) -> Float[Tensor, "b c x y"]:
        """d/dt of every cell average."""
        primitive = to_primitive(state[:, :5], gamma=self.gamma)
        total = torch.zeros_like(state)
        gas = total[:, :5]
        for normal, (dim, axis) in enumerate(zip((-2, -1), self.axes, strict=True), start=1):
            padded = self.beyond(primitive, dim, width=2)
            steps = differences(padded, dim)
            rise = weight = None
            if self.gravity:
                rise = differences(self.beyond(state[:, 5:], dim, width=2), dim)
                weight = _means(padded[:, :1], dim).mul_(rise)
                steps[:, PRESSURE : PRESSURE + 1].add_(weight)
            left, right = _face_states(padded, steps, weight, dim)
            flux = hllc_flux(left, right, gamma=self.gamma, normal=normal)
            gas.sub_(differences(flux, dim).div_(axis.spacing))
            if rise is not None and weight is not None:
                faces = flux.shape[dim]
                work = flux[:, :1] * rise.narrow(dim, 1, faces)
                gas[:, normal : normal + 1].sub_(_means(weight.narrow(dim, 1, faces), dim).div_(axis.spacing))
                gas[:, 3:4].sub_(_means(work, dim).div_(axis.spacing))
        return total

    def time_step(self, state: Float[Tensor, "b c x y"]) -> Float[Tensor, " b"]:
        """cfl / max over cells of sum over axes of (|velocity| + sound speed) / dx."""
        primitive = to_primitive(state[:, :5], gamma=self.gamma)
        sound = sound_speed(primitive[:, 0], primitive[:, 3], gamma=self.gamma)
        crossings = torch.zeros_like(sound)
        for normal, axis in enumerate(self.axes, start=1):
            crossings.add_(primitive[:, normal].abs().add_(sound).div_(axis.spacing))
        return self.cfl / crossings.flatten(1).amax(dim=1)


def heun(
    rate: Callable[[Tensor], Tensor], state: Float[Tensor, "b c *cells"], dt: Float[Tensor, " b"]
) -> Float[Tensor, "b c *cells"]:
    """Two Euler steps, then the mean of start and end: second order, and no new extrema if one step makes none."""
    column = dt.reshape(-1, *[1] * (state.ndim - 1))
    once = rate(state).mul_(column).add_(state)
    return rate(once).mul_(column).add_(once).add_(state).mul_(0.5)


def cell_averages(
    function: Callable[[Tensor, Tensor], Tensor], axes: Sequence[Axis], *, samples: int = 4
) -> Float[Tensor, "c x y"]:
    """Averages over cells of a function of (x, y) that returns (channel, x, y): mean of `samples`^2 points a cell."""
    fine = []
    for axis in axes:
        inner = (torch.arange(samples, dtype=torch.float64) + 0.5) / samples - 0.5
        centres = torch.from_numpy(axis.coordinates())
        fine.append((centres[:, None] + axis.spacing * inner).flatten())
    values = function(*torch.meshgrid(*fine, indexing="ij"))
    return values.unflatten(-1, (-1, samples)).unflatten(-3, (-1, samples)).mean(dim=(-3, -1))


def _means(field: Float[Tensor, "b c *any"], dim: int) -> Tensor:
    """Arithmetic mean of neighbours; one shorter along `dim`."""
    size = field.shape[dim] - 1
    return (field.narrow(dim, 1, size) + field.narrow(dim, 0, size)).mul_(0.5)


def _face_states(padded: Conserved, steps: Tensor, weight: Tensor | None, dim: int) -> tuple[Tensor, Tensor]:
    """Primitive states on both sides of every face; hydrostatic pressure is carried over, the rest is limited."""
    left, right = face_states(padded, steps, dim)
    if weight is not None:
        carried = weight.narrow(dim, 1, left.shape[dim]) * 0.5
        left[:, PRESSURE : PRESSURE + 1].sub_(carried)
        right[:, PRESSURE : PRESSURE + 1].add_(carried)
    return left, right
