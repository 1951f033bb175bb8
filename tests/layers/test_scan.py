"""Two-way scans and sweeps over 1D, 2D and 3D grids."""

import pytest
import torch
from tests.losses import losses

from ssno.layers.sweeps import AxisSweep, TwoWayScan, along


def test_two_way_scan_with_tied_directions_commutes_with_reflection() -> None:
    scan = TwoWayScan(4, d_state=6).double()
    scan.back.load_state_dict(scan.ahead.state_dict())
    x = torch.randn(3, 4, 13, dtype=torch.float64)
    torch.testing.assert_close(scan(x.flip(-1)), scan(x).flip(-1), atol=1e-12, rtol=0)


def test_directions_are_not_tied_by_default() -> None:
    scan = TwoWayScan(4, d_state=6).double()
    x = torch.randn(1, 4, 13, dtype=torch.float64)
    assert (scan(x.flip(-1)) - scan(x).flip(-1)).abs().max() > 1e-3


@pytest.mark.parametrize(("residual", "copies"), [("sum", 1), ("path", 2), ("none", 0)])
def test_residual_says_how_often_the_input_is_added(residual, copies) -> None:
    scan = TwoWayScan(4, d_state=6, residual=residual)
    x = torch.randn(2, 4, 9)
    torch.testing.assert_close(scan(x), scan.ahead(x) + scan.back(x) + copies * x)


@pytest.mark.parametrize("boundary", ["wrapped", "one-period"])
def test_periodic_scans_commute_with_translation(boundary) -> None:
    sweep = AxisSweep(4, axes=2, d_state=6, boundary=boundary)
    field = torch.randn(4, 8, 9, 2)
    moved = sweep(field.roll((3, 2), dims=(1, 2)), spacing=(1.0, 1.0))
    torch.testing.assert_close(moved, sweep(field, spacing=(1.0, 1.0)).roll((3, 2), dims=(1, 2)), atol=1e-5, rtol=1e-5)


def test_zero_boundary_does_not_commute_with_translation() -> None:
    sweep = AxisSweep(4, axes=1, d_state=6)
    field = torch.randn(4, 8, 2)
    moved = sweep(field.roll(3, dims=1), spacing=(1.0,))
    assert (moved - sweep(field, spacing=(1.0,)).roll(3, dims=1)).abs().max() > 1e-3


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_sweep_scans_each_axis_in_turn(axes) -> None:
    sweep = AxisSweep(3, axes=axes, d_state=4).double()
    field = torch.randn(3, *(4, 5, 6)[:axes], 2, dtype=torch.float64)
    expected = field
    for axis in range(1, 1 + axes):
        lines = expected.movedim((0, axis), (-2, -1))  # *rest b h l
        scanned = sweep.scans[axis - 1](lines.flatten(0, -3)).unflatten(0, lines.shape[:-2])
        expected = scanned.movedim((-2, -1), (0, axis))
    torch.testing.assert_close(sweep(field, spacing=(1.0,) * axes), expected)


def test_after_one_sweep_every_point_has_heard_from_every_other() -> None:
    sweep = AxisSweep(2, axes=2, d_state=4).double()
    field = torch.randn(2, 4, 5, 1, dtype=torch.float64, requires_grad=True)
    for x, y in [(0, 0), (3, 4), (1, 2)]:
        (reach,) = torch.autograd.grad(sweep(field, spacing=(1.0, 1.0))[:, x, y].sum(), field)
        assert reach.abs().sum(0).gt(0).all()


def test_along_undoes_its_own_reordering() -> None:
    field = torch.randn(2, 3, 4, 5, 6)
    for axis in range(3):
        torch.testing.assert_close(along(lambda lines: 2 * lines, field, axis=axis), 2 * field)


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_scan_options_are_refused() -> None:
    with pytest.raises(ValueError, match="`residual` must be one of 'sum', 'path', 'none', got 'both'"):
        TwoWayScan(4, residual="both")
    with pytest.raises(ValueError, match="`boundary` must be one of 'zero', 'wrapped', .*got 'open'"):
        TwoWayScan(4, boundary="open")


def test_two_way_scan_trains_inside_an_ordinary_module() -> None:
    model = torch.nn.Sequential(torch.nn.Conv1d(1, 8, 1), TwoWayScan(8, d_state=4), torch.nn.Conv1d(8, 1, 1))
    x = torch.randn(4, 1, 16)
    found = losses(model, x, x.cumsum(-1))
    assert found[-1] < found[0]
