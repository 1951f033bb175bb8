"""Variant sweeps against the scans they are made of."""

import pytest
import torch

from ssno.layers.axial import AxialScan, ParallelAxialScan, RasterScan, UnidirectionalScan
from ssno.layers.block import scan_weights
from ssno.layers.modes import ModeOptions


def lines_of(field: torch.Tensor, axis: int) -> torch.Tensor:
    """(h, *grid, b) as (lines, h, l), lines parallel to a grid axis."""
    return field.movedim((0, 1 + axis), (-2, -1)).flatten(0, -3)


def field_of(lines: torch.Tensor, like: torch.Tensor, axis: int) -> torch.Tensor:
    moved = like.movedim((0, 1 + axis), (-2, -1))
    return lines.view(moved.shape).movedim((-2, -1), (0, 1 + axis))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_one_way_sweep_adds_one_forward_scan_per_axis(axes) -> None:
    sweep = UnidirectionalScan(3, axes=axes, d_state=4).double()
    field = torch.randn(3, *(4, 5, 6)[:axes], 2, dtype=torch.float64)
    expected = field
    for axis in range(axes):
        expected = expected + field_of(sweep.scans[axis](lines_of(expected, axis)), expected, axis)
    torch.testing.assert_close(sweep(field, spacing=(1.0,) * axes), expected)


def test_a_one_way_sweep_ignores_points_after() -> None:
    sweep = UnidirectionalScan(3, axes=2, d_state=4).double()
    field = torch.randn(3, 6, 7, 1, dtype=torch.float64)
    changed = field.clone()
    changed[:, 4:, :], changed[:, :, 5:] = changed[:, 4:, :] + 1, changed[:, :, 5:] + 1
    ahead = sweep(changed, spacing=(1.0, 1.0)) - sweep(field, spacing=(1.0, 1.0))
    assert ahead[:, :4, :5].abs().max() < 1e-12
    assert ahead[:, 4:, 5:].abs().min() > 1e-6


def test_a_flattened_sweep_scans_rows_then_columns_without_lifting_the_pen() -> None:
    sweep = RasterScan(3, axes=2, d_state=4).double()
    field = torch.randn(3, 4, 5, 2, dtype=torch.float64)
    spacing = (0.5, 2.0)
    expected = field
    for turn, fastest in enumerate((1, 0)):
        grid = expected if fastest == 1 else expected.transpose(1, 2)
        line = grid.reshape(3, 20, 2).permute(2, 0, 1)  # b h (x y)
        scanned = sweep.scans[turn](line, spacing=spacing[fastest])
        mixed = sweep.mixings[turn](scanned.permute(1, 2, 0)).view(grid.shape)
        expected = expected + (mixed if fastest == 1 else mixed.transpose(1, 2))
    torch.testing.assert_close(sweep(field, spacing=spacing), expected)


def test_in_three_dimensions_every_axis_is_the_fastest_once() -> None:
    sweep = RasterScan(2, axes=3, d_state=4).double()
    for scan in sweep.scans:
        scan.lines = lambda lines, weights: lines * weights.sampling.spacing
    for mixing in sweep.mixings:
        torch.nn.init.eye_(mixing.weight)
        torch.nn.init.zeros_(mixing.bias)
    field = torch.randn(2, 3, 4, 5, 1, dtype=torch.float64)
    torch.testing.assert_close(sweep(field, spacing=(2.0, 3.0, 5.0)), field * 3 * 4 * 6)


def test_a_parallel_sweep_adds_the_axes_then_refines_and_normalises() -> None:
    sweep = ParallelAxialScan(3, axes=2, d_state=4).double()
    field = torch.randn(3, 4, 5, 2, dtype=torch.float64)
    summed = sum(field_of(sweep.scans[axis](lines_of(field, axis)), field, axis) for axis in range(2))
    maps, norm = sweep.backcast.maps, sweep.backcast.norm
    wide = torch.einsum("oh,h...->o...", maps.widen.weight, summed) + maps.widen.bias[:, None, None, None]
    back = torch.einsum("oh,h...->o...", maps.narrow.weight, wide.relu()) + maps.narrow.bias[:, None, None, None]
    centred = back - back.mean(0)
    standard = centred / (centred.square().mean(0) + norm.eps).sqrt()
    torch.testing.assert_close(sweep(field, spacing=(1.0, 1.0)), field + standard)


@pytest.mark.parametrize("points", [12, 13])
def test_scans_sampled_together_keep_their_own_discretisation(points) -> None:
    kinds = [ModeOptions(discretisation=kind, dt_min=0.5, dt_max=1.0) for kind in ("zoh", "bilinear")]
    first, second = (AxialScan(4, axes=1, d_state=4, options=options) for options in kinds)
    _, found = scan_weights([*first.scans_on((12,), (1.0,)), *second.scans_on((points,), (1.0,))])
    torch.testing.assert_close(found.taps[0], second.scans[0].ahead.taps(points))
