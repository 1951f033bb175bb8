"""The compiled ETDRK4 step: that of PyTorch to rounding, every trajectory for itself, and never necessary."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.native.build import SWITCH
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import Step, etdrk4
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.spectral import SpectralEquation, burgers, engine, kuramoto_sivashinsky


@pytest.fixture
def compiled() -> None:
    assert engine(512) == "native", "the tests of compiled code need a C compiler"


def line(points: int) -> SpectralGrid:
    return SpectralGrid([Axis("x", 64.0, points)], dealias=True)


def both(equation: SpectralEquation, dt: float) -> tuple[Step, Step]:
    assert equation.compiled is not None
    return etdrk4(equation, dt), etdrk4(replace(equation, compiled=None), dt)


def waves(grid: SpectralGrid, count: int) -> Tensor:
    """Smooth random fields: modes that fall off."""
    modes = torch.randn(count, 1, *grid.modes_shape, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    modes[..., 0] = modes[..., 0].real.to(modes.dtype)
    return modes / (1 + torch.arange(grid.modes_shape[0], dtype=torch.float64))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("points", [8, 16, 32, 64, 512, 4096])
def test_the_compiled_step_is_the_one_of_pytorch(points: int) -> None:
    """Powers of two with an even and an odd exponent: the innermost transform has four points or two."""
    grid = line(points)
    native, pure = both(burgers(grid, diffusivity=0.1), 1e-2)
    start = waves(grid, 11)
    one, other = native(start, 0.0), pure(start, 0.0)
    assert not torch.equal(one, start)
    torch.testing.assert_close(one - start, other - start, rtol=1e-11, atol=1e-14)


@pytest.mark.usefixtures("compiled")
def test_a_whole_trajectory_agrees_as_far_as_chaos_allows() -> None:
    grid = line(512)
    native, pure = both(kuramoto_sivashinsky(grid, viscosity=0.1), 0.005)
    problem = KuramotoSivashinsky()
    parameters = problem.draw(np.random.Generator(np.random.Philox(2)))
    one = other = grid.to_modes(torch.from_numpy(problem.initial_condition(parameters, grid.axes[0]))[None, None])
    for _ in range(300):
        one, other = native(one, 0.0), pure(other, 0.0)
    assert (one - other).norm() < 1e-12 * other.norm()


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("count", [1, 7, 8, 9])
def test_lanes_never_meet(count: int) -> None:
    """Alone, in a full group, in one filled up with copies: the same bits, even beside a trajectory that explodes."""
    grid = line(64)
    step = etdrk4(burgers(grid, diffusivity=0.1), 1e-2)
    start = waves(grid, 9)
    alone = torch.cat([step(one[None], 0.0) for one in start])
    start[0] = float("nan")
    together = step(start.flip(0)[:count], 0.0)
    assert torch.equal(together[:8], alone.flip(0)[:count][:8])


@pytest.mark.usefixtures("compiled")
def test_a_step_leaves_its_input_alone_and_takes_any_memory_layout() -> None:
    grid = line(64)
    step = etdrk4(burgers(grid, diffusivity=0.1), 1e-2)
    start = waves(grid, 6)
    before = start.clone()
    assert torch.equal(step(start, 0.0)[::2], step(start[::2], 0.0))
    assert torch.equal(start, before)


def test_without_compiled_code_a_trajectory_is_still_the_same_in_any_batch(monkeypatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    problem = KuramotoSivashinsky(frames=2, end_time=0.1)
    rng = np.random.Generator(np.random.Philox(3))
    parameters = [problem.draw(rng) for _ in range(7)]
    together = problem.solve(parameters).state
    assert problem.solver_options["engine"] == "torch"
    assert np.array_equal(problem.solve(parameters[3:4]).state, together[3:4])
    assert np.array_equal(problem.solve(parameters[::-1]).state[::-1], together)


@pytest.mark.parametrize("points", [4, 12, 48, 500])
def test_other_numbers_of_points_are_left_to_pytorch(points: int) -> None:
    assert engine(points) == "torch"
    grid = line(points)
    step = etdrk4(burgers(grid, diffusivity=0.1), 1e-2)
    assert torch.isfinite(step(waves(grid, 2), 0.0)).all()


def test_the_switch_decides_the_engine(monkeypatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert engine(512) == "torch"
