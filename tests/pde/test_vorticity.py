"""The vorticity equation against closed solutions, budgets and an independent solver."""

import numpy as np
import pytest
import torch

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.initial_conditions import gaussian_field
from ssno.pde.problems.problem import SolverDiverged
from ssno.pde.vorticity import WaveForce, velocity_symbols, vorticity, vorticity_frames


def square(points: int) -> SpectralGrid:
    return SpectralGrid((Axis("x", 1.0, points), Axis("y", 1.0, points)), dealias=True)


def smooth(points: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """A random field without waves that the dealiased grid cannot carry."""
    grid = square(points)
    return scale * grid.to_field(grid.to_modes(torch.from_numpy(gaussian_field(seed, points)))).numpy()


def frames(initial: np.ndarray, times: list[float], *, viscosity: float, step: float, force=None) -> np.ndarray:
    return vorticity_frames(
        square(initial.shape[-1]),
        initial[None],
        np.array(times),
        viscosity=np.array([viscosity]),
        force=None if force is None else lambda indices: force,
        step=step,
        block=1,
    )[0]


def budget(field: np.ndarray) -> tuple[float, float, float]:
    """Energy, enstrophy and palinstrophy: half the mean squares of velocity, vorticity and its gradient."""
    grid = square(field.shape[-1])
    modes = grid.to_modes(torch.from_numpy(field))
    velocity = grid.to_field(modes * velocity_symbols(grid))
    gradient = grid.to_field(torch.stack([modes * symbol for symbol in grid.gradient()]))
    means = [0.5 * part.square().sum(dim=0).mean() for part in (velocity, grid.to_field(modes)[None], gradient)]
    return tuple(float(mean) for mean in means)


def wave(number: tuple[int, int], sine: float, cosine: float, drift: float = 0.0) -> WaveForce:
    return WaveForce(np.array([number]), sine=np.array([[sine]]), cosine=np.array([[cosine]]), drift=drift)


def test_taylor_green_vortices_decay_in_place() -> None:
    """w = 2 cos 2 pi x cos 2 pi y exp(-8 pi^2 viscosity t)."""
    x = np.arange(32) / 32
    initial = 2 * np.outer(np.cos(2 * np.pi * x), np.cos(2 * np.pi * x))
    times = [0.0, 0.5, 2.0]
    states = frames(initial, times, viscosity=1e-2, step=0.02)
    expected = np.exp(-8 * np.pi**2 * 1e-2 * np.array(times))[:, None, None] * initial
    np.testing.assert_allclose(states, expected, atol=1e-13)


def test_basdevants_form_is_advection() -> None:
    """Against -u . grad w, computed from derivatives on a grid fine enough for the product."""
    grid = square(48)
    modes = grid.to_modes(torch.from_numpy(smooth(48)))[None, None].clone()
    equation = vorticity(grid, viscosity=torch.zeros(1, dtype=torch.float64))
    assert equation.nonlinear is not None
    velocity = grid.to_field(modes[0] * velocity_symbols(grid))
    gradient = grid.to_field(torch.stack([modes[0, 0] * symbol for symbol in grid.gradient()]))
    expected = grid.to_modes(-(velocity * gradient).sum(dim=0))
    torch.testing.assert_close(equation.nonlinear(modes, 0.0)[0, 0], expected, rtol=0, atol=1e-15)


def test_velocity_is_free_of_divergence_and_its_curl_is_the_vorticity() -> None:
    grid = square(24)
    modes = grid.to_modes(torch.from_numpy(smooth(24)))
    u, v = modes * velocity_symbols(grid)
    d_x, d_y = grid.gradient()
    assert (d_x * u + d_y * v).abs().max() < 1e-16
    torch.testing.assert_close(d_x * v - d_y * u, modes, rtol=0, atol=1e-15)


def test_energy_and_enstrophy_budgets_close() -> None:
    """dE/dt = -2 nu Z + <psi f>, dZ/dt = -2 nu P + <w f>: the advection term cancels exactly."""
    grid, viscosity = square(32), 3e-3
    field = smooth(32)
    modes = grid.to_modes(torch.from_numpy(field))[None, None].clone()
    force = WaveForce(np.array([[1, 1], [0, 2]]), sine=np.array([[0.1, 0.3]]), cosine=np.array([[0.2, -0.1]]))
    equation = vorticity(grid, viscosity=torch.tensor([viscosity], dtype=torch.float64), force=force.on(grid))
    assert equation.nonlinear is not None
    change = grid.to_field(equation.linear * modes + equation.nonlinear(modes, 0.0))[0, 0].numpy()
    laplacian = grid.laplacian()
    laplacian[0, 0] = -1
    stream = grid.to_field(-modes / laplacian)[0, 0].numpy()
    pushed = force.values(grid.axes, 0.0)[0]
    _, enstrophy, palinstrophy = budget(field)
    assert (stream * change).mean() == pytest.approx(-2 * viscosity * enstrophy + (stream * pushed).mean(), abs=1e-15)
    assert (field * change).mean() == pytest.approx(-2 * viscosity * palinstrophy + (field * pushed).mean(), abs=1e-14)
    assert abs(change.mean()) < 1e-16


def test_without_viscosity_energy_and_enstrophy_are_conserved() -> None:
    initial = smooth(32, scale=10.0)
    end = frames(initial, [1.0], viscosity=0.0, step=0.005)[-1]
    assert np.abs(end - initial).max() > 0.3 * np.abs(initial).max()
    for before, after in zip(budget(initial)[:2], budget(end)[:2], strict=True):
        assert after == pytest.approx(before, rel=3e-8)
    assert abs(end.mean()) < 1e-15


@pytest.mark.parametrize("drift", [0.0, 0.2])
def test_one_forced_wave_responds_as_the_stokes_mode(drift: float) -> None:
    """A single wave does not advect itself: w_k(t) = f_k (e^{i drift t} - e^{-nu k^2 t}) / (nu k^2 + i drift)."""
    viscosity, time = 0.05, 1.5
    rate = viscosity * 8 * np.pi**2
    end = frames(np.zeros((16, 16)), [time], viscosity=viscosity, step=0.01, force=wave((1, 1), 0.1, 0.1, drift))[0]
    response = 0.05 * (1 - 1j) * (np.exp(1j * drift * time) - np.exp(-rate * time)) / (rate + 1j * drift)
    x = np.arange(16) / 16
    expected = 2 * np.real(response * np.exp(2j * np.pi * (x[:, None] + x)))
    np.testing.assert_allclose(end, expected, atol=2e-10)


def test_the_error_falls_with_the_fourth_power_of_the_step() -> None:
    initial, force = smooth(32, scale=10.0), wave((0, 1), 0.3, 0.1, drift=3.0)
    states = [frames(initial, [0.4], viscosity=1e-3, step=h, force=force)[0] for h in (0.02, 0.01, 0.005, 1e-3)]
    errors = [np.abs(state - states[-1]).max() for state in states[:-1]]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 4) < 0.35).all(), orders


def crank_nicolson_euler(initial: np.ndarray, *, viscosity: float, dt: float, steps: int) -> np.ndarray:
    """The scheme class of the public data, written on full complex transforms in advective form; Li's force."""
    points = len(initial)
    m = np.fft.fftfreq(points, 1 / points)
    m_x, m_y = np.meshgrid(m, m, indexing="ij")
    squared = 4 * np.pi**2 * (m_x**2 + m_y**2)
    inverse = 1 / np.where(squared == 0, 1, squared)
    kept = (np.abs(m_x) < points / 3) & (np.abs(m_y) < points / 3)
    x = np.arange(points) / points
    angle = 2 * np.pi * (x[:, None] + x)
    force = np.fft.fft2(0.1 * (np.sin(angle) + np.cos(angle)))
    w = np.fft.fft2(initial)
    d_x, d_y = 2j * np.pi * m_x, 2j * np.pi * m_y
    for _ in range(steps):
        u, v, w_x, w_y = np.fft.ifft2(np.stack([d_y * w * inverse, -d_x * w * inverse, d_x * w, d_y * w])).real
        advection = np.fft.fft2(u * w_x + v * w_y) * kept
        half = 0.5 * dt * viscosity * squared
        w = ((1 - half) * w + dt * (force - advection)) / (1 + half)
    return np.fft.ifft2(w).real


@pytest.mark.parametrize("time", [0.1, pytest.param(1.0, marks=pytest.mark.verify)])
def test_an_independent_first_order_solver_converges_to_ours(time: float) -> None:
    """64^2 points, steps of 2e-4 and 1e-4: the distance halves, and extrapolation removes nearly all of it."""
    initial = smooth(64)
    ours = frames(initial, [time], viscosity=1e-3, step=0.01, force=wave((1, 1), 0.1, 0.1))[0]
    coarse, fine = (crank_nicolson_euler(initial, viscosity=1e-3, dt=dt, steps=round(time / dt)) for dt in (2e-4, 1e-4))
    size = np.linalg.norm(ours)
    assert np.linalg.norm(fine - ours) / size < 1e-4
    assert np.linalg.norm(coarse - ours) / np.linalg.norm(fine - ours) == pytest.approx(2, abs=0.01)
    assert np.linalg.norm(2 * fine - coarse - ours) / size < 1e-7


def test_fast_flow_takes_shorter_steps_than_asked_for() -> None:
    """A step of 0.5 would be far beyond the stability limit."""
    initial = smooth(32, scale=20.0)
    wild = frames(initial, [0.5], viscosity=1e-3, step=0.5)[0]
    careful = frames(initial, [0.5], viscosity=1e-3, step=2e-3)[0]
    assert np.linalg.norm(wild - careful) < 0.05 * np.linalg.norm(careful)


def test_hopeless_flow_is_reported_with_its_trajectory() -> None:
    grid = square(16)
    initial = np.stack([smooth(16), smooth(16), 1e9 * smooth(16)])
    options = {"viscosity": np.full(3, 1e-3), "force": None, "step": 0.1, "block": 2}
    with pytest.raises(SolverDiverged, match="Trajectory 2 of the batch is no longer finite at solver step 0, time 0"):
        vorticity_frames(grid, initial, np.array([0.0, 1.0]), **options)
    initial[2] = np.nan
    with pytest.raises(SolverDiverged, match="Trajectory 2 of the batch is no longer finite at solver step 0, time 0"):
        vorticity_frames(grid, initial, np.array([1.0]), **options)
    options["viscosity"] = np.array([1e-3, -1e3, 1e-3])
    initial[2] = initial[0]
    with pytest.raises(SolverDiverged, match="Trajectory 1 of the batch is no longer finite at solver step"):
        vorticity_frames(grid, initial, np.array([1.0]), **options)


def test_grids_and_steps_that_do_not_fit_are_refused() -> None:
    line = SpectralGrid([Axis("x", 1.0, 16)], dealias=True)
    with pytest.raises(ValueError, match="Vorticity needs a dealiased grid with 2 axes, got 1 axes"):
        vorticity(line, viscosity=torch.zeros(1, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"`step` must be a positive finite number, got 0\.0"):
        frames(smooth(16), [1.0], viscosity=1e-3, step=0.0)
