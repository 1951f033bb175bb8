"""Periodic equations in Fourier space: what to solve, not how.

    d/dt u_k = linear_k u_k + N_k(u, t)

`linear` is the symbol of the stiff linear part, integrated exactly by `ssno.pde.integrators`; N collects the
rest. States are coefficients of shape (trajectory, channel, *modes) on a `SpectralGrid`. A symbol may carry leading
axes (trajectory, 1), so that every trajectory has its own viscosity.

Axes: b trajectory, c channel (one for scalar equations), *modes kept Fourier modes.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import EllipsisType
from typing import Literal

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.native.build import library
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid

# The convective term -(u^2 / 2)_x of Burgers and Kuramoto-Sivashinsky, and a compiled ETDRK4 step for them.
#
#     N_k = factor_k S_k(u),    S = transform of u^2,    factor_k = -i k / 2 / points
#
# PyTorch makes 8 transforms and 10 passes over the modes per step, each for the whole batch. `convection.c` takes eight
# trajectories at a time through a whole step while they stay in cache, one per SIMD lane: about 4 times as fast. It
# serves lines whose number of points is a power of two, with a real linear symbol; everything else, and machines
# without a compiler, take the PyTorch step of `ssno.pde.integrators`. The two agree to rounding.

LANES, ALIGNMENT = 8, 64
SOURCE = Path(__file__).with_name("convection.c")
Engine = Literal["native", "torch"]


class Convection:
    """-(u^2 / 2)_x = factor * squared on a dealiased line, two transforms per call."""

    def __init__(self, grid: SpectralGrid):
        if len(grid.axes) != 1 or not grid.dealias:
            raise ValueError(
                f"This equation needs a dealiased grid with 1 axis, got {len(grid.axes)} axes and "
                f"`dealias={grid.dealias}`. Build it with SpectralGrid([axis], dealias=True)."
            )
        self.grid = grid
        self.factor = -0.5 / grid.shape[0] * grid.gradient()[0]

    def squared(self, modes: Complex[Tensor, "b c k"], time: float) -> Complex[Tensor, "b c k"]:
        """The unscaled transform of u^2."""
        field = self.grid.to_field(modes)
        return self.grid.to_modes(field.mul_(field), scaled=False)

    def compiled_step(
        self, factors: Sequence[Float[Tensor, " k"]], weights: Sequence[Float[Tensor, " k"]]
    ) -> Callable[[Tensor, float], Tensor]:
        """A compiled ETDRK4 step from e^z, e^{z/2} and the six weights of `ssno.pde.integrators.etdrk4`."""
        turn = self.factor.imag / 2  # the compiled transform is twice the one that the factor belongs to
        return native_step(self.grid, [*factors, *(weight * turn for weight in weights)])


def engine(points: int) -> Engine:
    """What computes the steps on a line of `points` points on this machine; decides the last bits of a solution."""
    fits = points >= 8 and points & (points - 1) == 0
    return "native" if fits and library(SOURCE) is not None else "torch"


def native_step(grid: SpectralGrid, weights: Sequence[Float[Tensor, " k"]]) -> Callable[[Tensor, float], Tensor]:
    """The compiled ETDRK4 step, given the eight rows of weights that `etdrk4_step` in convection.c asks for."""
    compiled = library(SOURCE)
    assert compiled is not None, "ask engine() first"
    points, kept = grid.shape[0], grid.modes_shape[0]
    table = torch.stack(list(weights)).contiguous()
    angle = 2 * torch.pi / points * torch.arange(points, dtype=torch.float64)
    turns = torch.polar(torch.ones_like(angle), angle)
    room = torch.empty(16 * LANES * (5 * kept + points // 2) + ALIGNMENT, dtype=torch.uint8)
    room = room[-room.data_ptr() % ALIGNMENT :]
    size, address = ctypes.c_size_t, ctypes.c_void_p
    compiled.etdrk4_step.argtypes = [address, address, size, size, size, address, address, address]
    compiled.etdrk4_step.restype = None

    def step(modes: Complex[Tensor, "b c k"], time: float) -> Complex[Tensor, "b c k"]:
        modes = modes.contiguous()
        result = torch.empty_like(modes)
        compiled.etdrk4_step(
            modes.data_ptr(),
            result.data_ptr(),
            modes.numel() // kept,
            points,
            kept,
            table.data_ptr(),
            turns.data_ptr(),
            room.data_ptr(),
        )
        return result

    return step


SpectralCoefficients = Complex[Tensor, "b c *modes"]
Nonlinear = Callable[[Tensor, float], Tensor]
CompiledStep = Callable[[Sequence[Tensor], Sequence[Tensor]], Nonlinear]
"""(factors of the state, weights of the nonlinear terms) -> step."""


@dataclass(frozen=True)
class SpectralEquation:
    """Linear symbol and nonlinear term `factor * nonlinear(modes, time)`; both take and return Fourier modes.

    Integrators may overwrite what `nonlinear` returns.

    `nonlinear=None` means that the equation is linear and every integrator is exact. `factor` is a symbol that
    integrators may fold into their weights. `compiled`, if there is one, makes a compiled ETDRK4 step out of them.
    """

    grid: SpectralGrid
    linear: Float[Tensor, "*modes"] | Complex[Tensor, "*modes"]
    nonlinear: Nonlinear | None = None
    factor: Complex[Tensor, "*modes"] | None = None
    compiled: CompiledStep | None = None

    def rate(self, modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        """The nonlinear term itself."""
        assert self.nonlinear is not None
        term = self.nonlinear(modes, time)
        return term if self.factor is None else term.mul_(self.factor)


def advection_diffusion(grid: SpectralGrid, *, diffusivity: float, velocity: Sequence[float] = ()) -> SpectralEquation:
    """u_t + velocity . grad u = diffusivity laplace u, any number of dimensions; no velocity is the heat equation.

    Every wave travels with the velocity and decays as exp(-diffusivity |k|^2 t): the exactly solvable case.
    """
    if velocity and len(velocity) != len(grid.axes):
        raise ValueError(f"`velocity` has {len(velocity)} components, the grid has {len(grid.axes)} axes.")
    linear = diffusivity * grid.laplacian()
    for speed, symbol in zip(velocity, grid.gradient(), strict=False):
        if speed:  # without wind the symbol stays real
            linear = linear - speed * symbol
    return SpectralEquation(grid, linear)


def burgers(grid: SpectralGrid, *, diffusivity: float) -> SpectralEquation:
    """u_t + (u^2 / 2)_x = diffusivity u_xx in one dimension, on a dealiased grid.

    Waves steepen into shocks of width about 4 diffusivity / jump, which the grid must resolve.
    """
    return convection_equation(grid, diffusivity * grid.laplacian())


def kuramoto_sivashinsky(grid: SpectralGrid, *, viscosity: float) -> SpectralEquation:
    """u_t + u u_x + u_xx + viscosity u_xxxx = 0 in one dimension, on a dealiased grid.

    Waves with k^2 < 1 / viscosity grow, fastest at k^2 = 1 / (2 viscosity) with rate 1 / (4 viscosity); steepening
    hands their energy to short waves, which are damped. The result is space-time chaos.
    """
    squared = grid.wavenumbers()[0].square()
    return convection_equation(grid, squared - viscosity * squared.square())


def convection_equation(
    grid: SpectralGrid, linear: Float[Tensor, "*modes"] | Complex[Tensor, "*modes"]
) -> SpectralEquation:
    """u_t + (u^2 / 2)_x = linear u in one dimension, on a dealiased grid; `linear` is the symbol of the linear part.

    Real symbols (diffusion) have a compiled step where this machine can compile; complex ones (dispersion) do not.
    """
    term = Convection(grid)
    step = term.compiled_step if engine(grid.shape[0]) == "native" and not linear.is_complex() else None
    return SpectralEquation(grid, linear, term.squared, term.factor, step)


# Walls for Fourier solvers: a box with walls is half of a periodic one.
#
# With cell centres x_i = (i + 1/2) dx, i < N, a field continued beyond the wall x = N dx by its mirror image,
#
#     neumann     u(2 L - x) =  u(x)      no flux through the walls: du/dx = 0 there
#     dirichlet   u(2 L - x) = -u(x)      held at 0 by the walls
#
# is periodic with length 2 L. An equation that keeps the symmetry keeps the walls, so any periodic solver serves:
# extend, solve on 2 N points, crop. Axes: any leading ones, then the space axes.

Wall = Literal["periodic", "neumann", "dirichlet"]


def box_axis(name: str, length: float, points: int, wall: Wall) -> Axis:
    """An axis of cell centres with this boundary."""
    return Axis(name, length, points, offset=0.5 * length / points, periodic=wall == "periodic")


def unfolded(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The periodic axes that the solver works on: twice as long where there are walls."""
    return tuple(a if a.periodic else replace(a, length=2 * a.length, points=2 * a.points, periodic=True) for a in axes)


def extend(field: np.ndarray, walls: Sequence[Wall]) -> np.ndarray:
    """The field on the unfolded grid."""
    for dim, wall in zip(range(-len(walls), 0), walls, strict=True):
        if wall != "periodic":
            image = np.flip(field, dim)
            field = np.concatenate([field, image if wall == "neumann" else -image], axis=dim)
    return field


def crop(field: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """The part of an unfolded field that lies in the box."""
    inside: tuple[EllipsisType | slice, ...] = (..., *(slice(axis.points) for axis in axes))
    return field[inside]
