"""Time integrators: exact in the linear part, fourth order in the rest, and their coefficients."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4, etdrk4_coefficients, ifrk4
from ssno.pde.spectral import SpectralEquation, advection_diffusion, burgers, kuramoto_sivashinsky
from ssno.pde.stepping import integrate

INTEGRATORS = [etdrk4, ifrk4]


def line(length: float, points: int) -> SpectralGrid:
    return SpectralGrid([Axis("x", length, points)], dealias=True)


def two_waves(grid: SpectralGrid) -> Tensor:
    x = torch.from_numpy(grid.axes[0].coordinates()) * (2 * torch.pi / grid.axes[0].length)
    return grid.to_modes((torch.cos(x) + 0.6 * torch.sin(3 * x + 0.4))[None, None])


def at_time_one(integrator: Callable, equation: SpectralEquation, start: Tensor, steps: int) -> Tensor:
    step = integrator(equation, 1 / steps)
    (end,) = integrate(step, start, dt=1 / steps, frames=1, steps_per_frame=steps)
    return end


def observed_order(integrator: Callable, equation: SpectralEquation, start: Tensor, steps: int) -> float:
    """log2 of the ratio of errors with `steps` and twice as many, against eight times as many."""
    rough, finer, finest = (at_time_one(integrator, equation, start, n * steps) for n in (1, 2, 8))
    return math.log2((rough - finest).norm() / (finer - finest).norm())


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_both_integrators_are_fourth_order_on_burgers(integrator: Callable) -> None:
    grid = line(16.0, 64)
    order = observed_order(integrator, burgers(grid, diffusivity=0.1), two_waves(grid), 32)
    assert abs(order - 4) < 0.1


@pytest.mark.parametrize(("integrator", "steps"), [(etdrk4, 64), (ifrk4, 256)])
def test_both_integrators_are_fourth_order_on_kuramoto_sivashinsky(integrator: Callable, steps: int) -> None:
    """The stiffer linear part asks for smaller steps before the order shows, above all with the integrating factor."""
    grid = line(32.0, 64)
    order = observed_order(integrator, kuramoto_sivashinsky(grid, viscosity=0.1), two_waves(grid), steps)
    assert abs(order - 4) < 0.15


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_order_holds_with_a_travelling_frame(integrator: Callable) -> None:
    """A complex linear symbol: Burgers plus advection."""
    grid = line(16.0, 64)
    still = burgers(grid, diffusivity=0.1)
    carried = advection_diffusion(grid, diffusivity=0.1, velocity=(3.0,))
    order = observed_order(integrator, SpectralEquation(grid, carried.linear, still.rate), two_waves(grid), 32)
    assert abs(order - 4) < 0.1


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_force_in_time_is_met_at_the_right_moments(integrator: Callable) -> None:
    """d/dt u = -a u + cos(w t) has the response (a cos w t + w sin w t - a e^{-a t}) / (a^2 + w^2)."""
    grid = line(1.0, 4)
    decay, frequency = 2.0, 5.0
    linear = torch.full(grid.modes_shape, -decay, dtype=torch.float64)
    equation = SpectralEquation(grid, linear, lambda modes, time: torch.full_like(modes, math.cos(frequency * time)))
    start = torch.zeros(1, 1, *grid.modes_shape, dtype=torch.complex128)
    response = decay * math.cos(frequency) + frequency * math.sin(frequency) - decay * math.exp(-decay)
    exact = response / (decay**2 + frequency**2)
    errors = [(at_time_one(integrator, equation, start, n) - exact).abs().max().item() for n in (20, 40)]
    assert errors[1] < 1e-6
    assert abs(math.log2(errors[0] / errors[1]) - 4) < 0.2


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("velocity", [(), (0.7,)])
def test_a_linear_equation_is_solved_exactly_in_one_step(integrator: Callable, velocity: tuple) -> None:
    grid = line(2.0, 32)
    equation = advection_diffusion(grid, diffusivity=0.05, velocity=velocity)
    start = grid.to_modes(torch.randn(3, 1, 32, dtype=torch.float64))
    leap = integrator(equation, 0.8)(start, 0.0)
    torch.testing.assert_close(leap, start * torch.exp(0.8 * equation.linear), rtol=1e-14, atol=0)
    torch.testing.assert_close(at_time_one(integrator, equation, start, 7)[0], (start * equation.linear.exp())[0])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_every_trajectory_may_have_its_own_viscosity(integrator: Callable) -> None:
    grid = line(16.0, 48)
    start = two_waves(grid).repeat(2, 1, 1)
    single = [kuramoto_sivashinsky(grid, viscosity=v) for v in (0.1, 0.3)]
    both = SpectralEquation(grid, torch.stack([one.linear[None] for one in single]), single[0].rate)
    together = at_time_one(integrator, both, start, 50)
    apart = torch.cat([at_time_one(integrator, one, start[:1], 50) for one in single])
    torch.testing.assert_close(together, apart, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_step_leaves_the_state_it_started_from_alone(integrator: Callable) -> None:
    grid = line(16.0, 48)
    start = two_waves(grid)
    before = start.clone()
    integrator(burgers(grid, diffusivity=0.1), 0.01)(start, 0.0)
    assert torch.equal(start, before)


def phi(order: int, z: complex) -> complex:
    """phi_0 = e^z, phi_{n+1} = (phi_n - 1/n!) / z: the recursion far from zero, the power series near it."""
    if abs(z) < 8:
        return sum(z**n / math.factorial(n + order) for n in range(60))
    value = complex(np.exp(z))
    for n in range(order):
        value = (value - 1 / math.factorial(n)) / z
    return value


def test_contour_means_agree_with_the_phi_functions_everywhere() -> None:
    """From z = 0 over tiny values, where the textbook formula loses all digits, to stiff, growing and turning ones."""
    values = [0, 1e-12, -1e-6, 1e-3, -0.5, 3, -8.5, -40, -3e4, 1e-5j, 0.9j, -2 + 6j, -30 - 90j]
    dt = 0.25
    linear = torch.tensor(values, dtype=torch.complex128) / dt
    ours = torch.stack(etdrk4_coefficients(linear, dt)).numpy()
    for column, z in zip(ours.T, values, strict=True):
        phi_1, phi_2, phi_3 = (phi(n, z) for n in (1, 2, 3))
        expected = [
            np.exp(z),
            np.exp(z / 2),
            dt / 2 * phi(1, z / 2),
            dt * (phi_1 - 3 * phi_2 + 4 * phi_3),
            dt * (2 * phi_2 - 4 * phi_3),
            dt * (4 * phi_3 - phi_2),
        ]
        np.testing.assert_allclose(column, expected, rtol=2e-13, atol=1e-15)


def test_real_symbols_give_real_coefficients_equal_to_the_complex_ones() -> None:
    linear = torch.linspace(-50, 3, 11, dtype=torch.float64)
    for real, complex_ in zip(
        etdrk4_coefficients(linear, 0.3), etdrk4_coefficients(linear.to(torch.complex128), 0.3), strict=True
    ):
        torch.testing.assert_close(real.to(torch.complex128), complex_, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("dt", [0.0, -0.1, float("nan"), float("inf")])
def test_a_step_must_be_positive_and_finite(integrator: Callable, dt: float) -> None:
    equation = advection_diffusion(line(1.0, 8), diffusivity=1.0)
    with pytest.raises(ValueError, match="`dt` must be a positive finite number, got"):
        integrator(equation, dt)


def test_a_factor_folded_into_the_weights_gives_the_same_step() -> None:
    """`burgers` has a term with a factor; hidden inside a plain function, it is multiplied in every stage instead."""
    grid = line(16.0, 48)
    folded = burgers(grid, diffusivity=0.1)
    hidden = SpectralEquation(grid, folded.linear, lambda modes, time: folded.rate(modes, time).contiguous())
    ends = [at_time_one(etdrk4, equation, two_waves(grid), 20) for equation in (folded, hidden)]
    torch.testing.assert_close(*ends, rtol=1e-13, atol=1e-15)
