"""Fourier coefficients on periodic boxes: exact derivatives, products without aliasing, one code for 1D to 3D."""

import pytest
import torch
from torch import Tensor

from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid

BOXES = [(17,), (18,), (12, 15), (15, 12), (10, 9, 8)]


def box(shape: tuple[int, ...]) -> list[Axis]:
    return [Axis("xyz"[i], 2.0 + i, points) for i, points in enumerate(shape)]


def mesh(axes: list[Axis]) -> tuple[Tensor, ...]:
    return torch.meshgrid(*[torch.from_numpy(axis.coordinates()) for axis in axes], indexing="ij")


def wave(axes: list[Axis], numbers: tuple[int, ...], phase: float) -> Tensor:
    angle = sum(2 * torch.pi * n / a.length * x for n, a, x in zip(numbers, axes, mesh(axes), strict=True))
    return torch.cos(angle + phase)


@pytest.mark.parametrize("shape", BOXES)
def test_all_modes_together_reproduce_any_field(shape: tuple[int, ...]) -> None:
    grid = SpectralGrid(box(shape), dealias=False)
    field = torch.randn(2, 3, *shape, dtype=torch.float64)
    modes = grid.to_modes(field)
    assert modes.shape[2:] == grid.modes_shape
    torch.testing.assert_close(grid.to_field(modes), field, rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", BOXES)
@pytest.mark.parametrize("dealias", [True, False])
def test_symbols_differentiate_waves_exactly(shape: tuple[int, ...], dealias: bool) -> None:
    axes = box(shape)
    grid = SpectralGrid(axes, dealias=dealias)
    numbers = (2, -1, 1)[: len(shape)]
    k = [2 * torch.pi * n / axis.length for n, axis in zip(numbers, axes, strict=True)]
    modes = grid.to_modes(wave(axes, numbers, 0.3))
    for symbol, k_axis in zip(grid.gradient(), k, strict=True):
        derivative = k_axis * wave(axes, numbers, 0.3 + torch.pi / 2)
        torch.testing.assert_close(grid.to_field(modes * symbol), derivative, rtol=0, atol=1e-12)
    laplacian = -sum(k_axis**2 for k_axis in k) * wave(axes, numbers, 0.3)
    torch.testing.assert_close(grid.to_field(modes * grid.laplacian()), laplacian, rtol=0, atol=1e-11)


def test_coefficients_do_not_depend_on_the_resolution() -> None:
    coarse, fine = (SpectralGrid([Axis("x", 3.0, points)], dealias=True) for points in (16, 40))
    modes = [grid.to_modes(wave(list(grid.axes), (3,), 0.7)) for grid in (coarse, fine)]
    torch.testing.assert_close(modes[0], modes[1][: len(modes[0])], rtol=0, atol=1e-15)
    assert abs(modes[0][3].abs() - 0.5) < 1e-15


@pytest.mark.parametrize("shape", BOXES)
def test_products_of_kept_modes_have_no_aliasing_error(shape: tuple[int, ...]) -> None:
    """The square on this grid equals the square on a grid twice as fine, mode by mode."""
    axes = box(shape)
    grid = SpectralGrid(axes, dealias=True)
    modes = grid.to_modes(torch.randn(shape, dtype=torch.float64))
    fine = SpectralGrid([Axis(a.name, a.length, 2 * a.points) for a in axes], dealias=True)
    padded = torch.zeros(fine.modes_shape, dtype=torch.complex128)
    half = [False] * (len(shape) - 1) + [True]
    places = [positions(n, m, half=h) for n, m, h in zip(grid.modes_shape, fine.modes_shape, half, strict=True)]
    index = torch.meshgrid(*places, indexing="ij")
    padded[index] = modes
    square = grid.to_modes(grid.to_field(modes).square())
    reference = fine.to_modes(fine.to_field(padded).square())[index]
    torch.testing.assert_close(square, reference, rtol=0, atol=1e-14)


def positions(kept: int, fine: int, *, half: bool) -> Tensor:
    """Where modes 0 ... M, -M ... -1 sit on a finer grid; a half axis stores 0 ... M only."""
    index = torch.arange(kept)
    return index if half else torch.where(index <= kept // 2, index, index + fine - kept)


@pytest.mark.parametrize("points", [4, 5, 6, 7, 8, 512])
def test_the_two_thirds_rule_keeps_modes_below_a_third_of_the_points(points: int) -> None:
    (kept,) = SpectralGrid([Axis("x", 1.0, points)], dealias=True).modes_shape
    assert 3 * (kept - 1) < points <= 3 * kept


def test_transforms_leave_their_input_alone() -> None:
    grid = SpectralGrid(box((8, 9)), dealias=True)
    field = torch.randn(2, 8, 9, dtype=torch.float64)
    modes = grid.to_modes(field)
    before = modes.clone()
    first = grid.to_field(modes)
    grid.to_field(2 * modes)  # reuses the scratch memory
    torch.testing.assert_close(first, grid.to_field(before), rtol=0, atol=0)
    torch.testing.assert_close(modes, before, rtol=0, atol=0)


def test_open_axes_have_no_fourier_modes() -> None:
    with pytest.raises(ValueError, match="Axis 'x' is not periodic. Fourier modes need periodic axes."):
        SpectralGrid([Axis("x", 1.0, 8, periodic=False)], dealias=False)


def test_three_points_cannot_be_dealiased() -> None:
    with pytest.raises(ValueError, match="Axis 'x' has 3 points; the 2/3 rule needs at least 4"):
        SpectralGrid([Axis("x", 1.0, 3)], dealias=True)


@pytest.mark.parametrize("points", [(12,), (12, 9)])
def test_an_unscaled_transform_is_the_number_of_points_times_the_coefficients(points: tuple[int, ...]) -> None:
    grid = SpectralGrid([Axis(name, 1.0, n) for name, n in zip("xy", points, strict=False)], dealias=True)
    field = torch.randn(2, *points, dtype=torch.float64)
    count = field[0].numel()
    torch.testing.assert_close(grid.to_modes(field, scaled=False), count * grid.to_modes(field), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("points", "dealias"), [((12,), True), ((12,), False), ((12, 9), True)])
def test_modes_written_to_the_workspace_give_the_same_field(points: tuple[int, ...], dealias: bool) -> None:
    grid = SpectralGrid([Axis(name, 1.0, n) for name, n in zip("xy", points, strict=False)], dealias=dealias)
    modes = grid.to_modes(torch.randn(3, *points, dtype=torch.float64)).clone()
    expected = grid.to_field(modes)
    workspace = grid.workspace(modes.shape)
    workspace.copy_(modes)
    assert torch.equal(grid.to_field(workspace), expected)
    assert torch.equal(grid.to_field(modes), expected)
