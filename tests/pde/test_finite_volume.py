"""The finite-volume scheme: order, conservation, monotonicity, and its readiness for systems in two dimensions."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.pde.finite_volume import BurgersLaw, FiniteVolume, half_slopes
from ssno.pde.geometry import Axis
from ssno.pde.stepping import march, midpoint


def cells(points: int, length: float = 1.0) -> Axis:
    return Axis("x", length, points, offset=0.5 * length / points)


def total_variation(u: np.ndarray) -> np.ndarray:
    return np.abs(u - np.roll(u, 1, axis=-1)).sum(axis=-1)


class TiltedAdvection:
    """Two tracers carried by one constant wind in two dimensions: the smallest system with an upwind flux."""

    wind = (0.8, -0.5)

    def flux(self, left: Tensor, right: Tensor, dim: int) -> Tensor:
        speed = self.wind[dim]
        return speed * (left if speed > 0 else right)

    def crossings(self, state: Tensor, spacing: Sequence[float]) -> Tensor:
        rate = sum(abs(c) / dx for c, dx in zip(self.wind, spacing, strict=True))
        return torch.full((state.shape[0],), rate, dtype=torch.float64)


def test_slopes_are_central_where_smooth_and_cut_near_jumps() -> None:
    backward = torch.tensor([1.0, 1.0, 4.0, -1.0, -4.0, 1.0, 0.0, -2.0], dtype=torch.float64)
    forward = torch.tensor([1.5, 4.0, 1.0, -1.5, -1.0, -1.0, 3.0, 2.0], dtype=torch.float64)
    expected = torch.tensor([0.625, 1.0, 1.0, -0.625, -1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    assert torch.equal(half_slopes(backward[None, None], forward[None, None])[0, 0], expected)


def test_the_burgers_flux_is_roes() -> None:
    left, right = torch.randn(2, 3, 1, 50, dtype=torch.float64)
    roe = 0.5 * (left**2 / 2 + right**2 / 2 - 0.5 * (left + right).abs() * (right - left))
    torch.testing.assert_close(BurgersLaw().flux(left, right, -1), roe, rtol=0, atol=1e-15)


def test_the_step_obeys_both_limits_for_every_trajectory() -> None:
    """0.25 min(dx / max|u|, dx^2 / (2 diffusivity)): fast flow is limited by crossing, slow flow by diffusion."""
    scheme = FiniteVolume(BurgersLaw(), (cells(100),), diffusivity=1e-2)
    state = torch.stack([torch.full((1, 100), speed, dtype=torch.float64) for speed in (-5.0, 0.1, 0.0)])
    dx = 0.01
    expected = torch.tensor([dx / 5, dx**2 / 2e-2, dx**2 / 2e-2], dtype=torch.float64) / 4
    torch.testing.assert_close(scheme.time_step(state), expected)


def test_advection_of_a_system_in_two_dimensions_is_second_order() -> None:
    errors = []
    for points in (24, 48):
        axes = tuple(Axis(name, 1.0, points, offset=0.5 / points) for name in "xy")
        x, y = np.meshgrid(*[axis.coordinates() for axis in axes], indexing="ij")

        def tracers(t: float, x: np.ndarray = x, y: np.ndarray = y) -> np.ndarray:
            a, b = 2 * np.pi * (x - 0.8 * t), 2 * np.pi * (y + 0.5 * t)
            return np.stack([np.sin(a) + np.cos(b), np.sin(a + b)])

        scheme = FiniteVolume(TiltedAdvection(), axes)
        end = march(scheme, tracers(0.0)[None], np.array([0.0, 0.5]), lanes=1)[0, -1]
        errors.append(np.abs(end - tracers(0.5)).mean())
    assert abs(math.log2(errors[0] / errors[1]) - 2) < 0.3


def test_burgers_is_second_order_before_shocks_form() -> None:
    """Against the implicit solution u = u0(x - u t) of the inviscid equation, in the mean over cells."""
    time, errors = 0.1, []
    for points in (128, 256, 512):
        axis = cells(points)
        x = axis.coordinates()
        exact = np.zeros(points)
        for _ in range(200):  # contracts: |t u0'| = 0.31
            exact = 0.3 + 0.5 * np.sin(2 * np.pi * (x - time * exact))
        initial = 0.3 + 0.5 * np.sin(2 * np.pi * x)
        end = march(FiniteVolume(BurgersLaw(), (axis,)), initial[None, None], np.array([0, time]), lanes=1)
        errors.append(np.abs(end[0, -1, 0] - exact).mean())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 1.9).all()
    assert errors[-1] < 2e-5


@pytest.mark.parametrize("diffusivity", [0.0, 1e-3 / np.pi])
def test_mass_is_conserved_and_variation_never_grows(diffusivity: float) -> None:
    axis = cells(256)
    rng = np.random.default_rng(1)
    waves = np.sin(2 * np.pi * np.outer(np.arange(1, 9), axis.coordinates()) + rng.uniform(0, 6, (8, 1)))
    initial = np.stack([rng.uniform(size=8) @ waves, np.sign(waves[0]), rng.standard_normal(256)])[:, None]
    scheme = FiniteVolume(BurgersLaw(), (axis,), diffusivity=diffusivity)
    states = march(scheme, initial, np.linspace(0, 0.5, 26), lanes=3)[:, :, 0]
    mass = states.mean(axis=-1)
    assert np.abs(mass - mass[:, :1]).max() < 1e-13
    assert (np.diff(total_variation(states), axis=1) < 1e-12).all()
    assert states.max() <= initial.max() + 1e-12
    assert states.min() >= initial.min() - 1e-12


def test_a_viscous_shock_travels_as_a_whole() -> None:
    """u = s - a tanh(a (x - s t) / (2 diffusivity)); the fan that closes the period starts far away."""
    speed, half_jump, diffusivity, time = 0.5, 1.0, 0.01, 0.5
    errors = []
    for points in (200, 400):
        axis = cells(points, length=4.0)
        x = axis.coordinates()

        def shock(t: float, x: np.ndarray = x) -> np.ndarray:
            return speed - half_jump * np.tanh(half_jump * (x - 1.5 - speed * t) / (2 * diffusivity))

        scheme = FiniteVolume(BurgersLaw(), (axis,), diffusivity=diffusivity)
        end = march(scheme, shock(0.0)[None, None], np.array([0.0, time]), lanes=1)[0, -1, 0]
        near = np.abs(x - 1.5 - speed * time) < 0.5
        errors.append(np.abs(end - shock(time))[near].mean())
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] > 3


def test_midpoint_steps_are_second_order_with_a_step_per_trajectory() -> None:
    state = torch.tensor([[[1.0]], [[1.0]]], dtype=torch.float64)
    dt = torch.tensor([0.1, 0.2], dtype=torch.float64)
    end = midpoint(lambda u: -u, state, dt)
    torch.testing.assert_close(end[:, 0, 0], 1 - dt + dt**2 / 2)
