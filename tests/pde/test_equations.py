"""What the equations do: growth rates, budgets, symmetries."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.spectral import advection_diffusion, burgers, kuramoto_sivashinsky
from ssno.pde.stepping import integrate

LENGTH, POINTS, VISCOSITY, DT = 64.0, 512, 0.1, 0.005


@pytest.fixture(scope="module")
def grid() -> SpectralGrid:
    return SpectralGrid([Axis("x", LENGTH, POINTS)], dealias=True)


@pytest.fixture(scope="module")
def start(grid: SpectralGrid) -> Tensor:
    problem = KuramotoSivashinsky()
    parameters = problem.draw(np.random.Generator(np.random.Philox(2)))
    return grid.to_modes(torch.from_numpy(problem.initial_condition(parameters, grid.axes[0]))[None, None])


def ks_states(grid: SpectralGrid, start: Tensor, *, steps: int, every: int = 1) -> list[Tensor]:
    step = etdrk4(kuramoto_sivashinsky(grid, viscosity=VISCOSITY), DT)
    return [start, *integrate(step, start, dt=DT, frames=steps // every, steps_per_frame=every)]


def test_small_waves_grow_and_decay_at_the_linear_rate(grid: SpectralGrid) -> None:
    """exp((k^2 - viscosity k^4) t) for one wave per trajectory: growing, fastest, nearly neutral and damped."""
    number = torch.tensor([1, 8, 22, 32, 36])
    k = 2 * torch.pi * number.double() / LENGTH
    x = torch.from_numpy(grid.axes[0].coordinates())
    start = grid.to_modes(1e-8 * torch.sin(k[:, None, None] * x + 0.3))
    end = ks_states(grid, start, steps=100, every=100)[-1]
    row = torch.arange(len(number))
    growth = end[row, 0, number] / start[row, 0, number]
    expected = torch.exp((k**2 - VISCOSITY * k**4) * 0.5).to(torch.complex128)
    torch.testing.assert_close(growth, expected, rtol=1e-10, atol=0)


def test_energy_changes_by_production_minus_dissipation(grid: SpectralGrid, start: Tensor) -> None:
    """d/dt mean(u^2)/2 = mean(u_x^2) - viscosity mean(u_xx^2), integrated over time by Simpson's rule."""
    states = torch.cat(ks_states(grid, start, steps=100))[:, 0]
    k = grid.wavenumbers()[0]
    power = states.abs().square()  # modes 1, 2, ... stand for themselves and their conjugates
    energy = power[:, 0] / 2 + power[:, 1:].sum(dim=1)
    budget = (2 * power * (k**2 - VISCOSITY * k**4)).sum(dim=1)
    simpson = DT / 3 * (budget[0] + 4 * budget[1::2].sum() + 2 * budget[2:-1:2].sum() + budget[-1])
    assert energy[-1] > 1.1 * energy[0]
    assert abs((energy[-1] - energy[0] - simpson) / energy[0]) < 1e-8


def test_the_nonlinear_term_moves_energy_but_makes_none(grid: SpectralGrid) -> None:
    equation = kuramoto_sivashinsky(grid, viscosity=VISCOSITY)
    modes = grid.to_modes(torch.randn(4, 1, POINTS, dtype=torch.float64))
    transfer = (modes.conj() * equation.rate(modes.clone(), 0.0)).real
    assert (transfer.sum(dim=-1).abs() < 1e-12 * transfer.abs().sum(dim=-1)).all()


def test_the_mean_is_conserved(grid: SpectralGrid, start: Tensor) -> None:
    lifted = start.clone()
    lifted[..., 0] = 0.7
    end = ks_states(grid, lifted, steps=200, every=200)[-1]
    assert (grid.to_field(end).mean() - 0.7).abs() < 1e-14


def test_a_uniform_wind_only_carries_the_pattern(grid: SpectralGrid, start: Tensor) -> None:
    """Galilean equivariance: u(x, 0) + c becomes u(x - c t, t) + c."""
    wind, steps = 1.5, 100
    lifted = start.clone()
    lifted[..., 0] += wind
    still = ks_states(grid, start, steps=steps, every=steps)[-1]
    moving = ks_states(grid, lifted, steps=steps, every=steps)[-1]
    carried = still * torch.exp(-1j * grid.wavenumbers()[0] * wind * steps * DT)
    carried[..., 0] += wind
    assert (moving - carried).abs().max() < 1e-8 * still.abs().max()


def test_waves_travel_with_the_wind_in_two_dimensions() -> None:
    axes = [Axis("x", 1.0, 16), Axis("y", 2.0, 12)]
    grid = SpectralGrid(axes, dealias=False)
    x, y = (torch.from_numpy(axis.coordinates()) for axis in axes)

    def wave(shift_x: float, shift_y: float) -> Tensor:
        return torch.sin(2 * torch.pi * (x[:, None] - shift_x) - torch.pi * (y - shift_y))[None, None]

    equation = advection_diffusion(grid, diffusivity=0.0, velocity=(0.3, -0.8))
    end = grid.to_field(etdrk4(equation, 0.5)(grid.to_modes(wave(0, 0)), 0.0))
    torch.testing.assert_close(end, wave(0.15, -0.4), rtol=0, atol=1e-14)


def test_a_velocity_needs_one_component_per_axis(grid: SpectralGrid) -> None:
    with pytest.raises(ValueError, match="`velocity` has 2 components, the grid has 1 axes"):
        advection_diffusion(grid, diffusivity=0.1, velocity=(1.0, 2.0))


@pytest.mark.parametrize(
    ("grid_2d_or_aliased", "message"),
    [
        (SpectralGrid([Axis("x", 1.0, 8)], dealias=False), "got 1 axes and `dealias=False`"),
        (SpectralGrid([Axis("x", 1.0, 8), Axis("y", 1.0, 8)], dealias=True), "got 2 axes and `dealias=True`"),
    ],
)
def test_one_dimensional_equations_say_what_grid_they_need(grid_2d_or_aliased: SpectralGrid, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        burgers(grid_2d_or_aliased, diffusivity=0.1)
