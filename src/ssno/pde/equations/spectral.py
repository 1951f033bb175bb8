"""Periodic equations in Fourier space: what to solve, not how.

    d/dt u_k = linear_k u_k + N_k(u, t)

`linear` is the symbol of the stiff linear part, integrated exactly by `ssno.pde.schemes.integrators`; N collects the
rest. States are coefficients of shape (trajectory, channel, *modes) on a `SpectralGrid`. A symbol may carry leading
axes (trajectory, 1), so that every trajectory has its own viscosity.

Axes: b trajectory, c channel (one for scalar equations), *modes kept Fourier modes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxtyping import Complex, Float
from torch import Tensor

from ssno.pde.equations.steepening import Steepening, engine
from ssno.pde.grids import SpectralGrid

SpectralCoefficients = Complex[Tensor, "b c *modes"]
Nonlinear = Callable[[Tensor, float], Tensor]
CompiledStep = Callable[[Sequence[Tensor], Sequence[Tensor]], Nonlinear]
"""(factors of the state, weights of the nonlinear terms) -> step."""


@dataclass(frozen=True)
class SpectralEquation:
    """Linear symbol and nonlinear term `factor * nonlinear(modes, time)`, in memory the caller may overwrite.

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
    return steepening_equation(grid, diffusivity * grid.laplacian())


def kuramoto_sivashinsky(grid: SpectralGrid, *, viscosity: float) -> SpectralEquation:
    """u_t + u u_x + u_xx + viscosity u_xxxx = 0 in one dimension, on a dealiased grid.

    Waves with k^2 < 1 / viscosity grow, fastest at k^2 = 1 / (2 viscosity) with rate 1 / (4 viscosity); steepening
    hands their energy to short waves, which are damped. The result is space-time chaos.
    """
    squared = grid.wavenumbers()[0].square()
    return steepening_equation(grid, squared - viscosity * squared.square())


def steepening_equation(grid: SpectralGrid, linear: Float[Tensor, "*modes"]) -> SpectralEquation:
    """u_t + (u^2 / 2)_x = linear u, with a compiled step where this machine has one."""
    term = Steepening(grid)
    step = term.compiled_step if engine(grid.shape[0]) == "native" else None
    return SpectralEquation(grid, linear, term.squared, term.factor, step)
