"""Scans of axes that end at walls."""

import pytest
import torch

from ssno.layers.block import scan_weights
from ssno.layers.modes import ModeOptions
from ssno.layers.s4d import S4DBlock
from ssno.layers.sweeps import AxisSweep
from ssno.models.ssno import SSNOConfig

MODES = ModeOptions(initialisation="grid", smallest_step=0.3, largest_step=3.0)


@pytest.mark.parametrize(("boundary", "sign"), [("even", 1), ("odd", -1)])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_wall_is_a_circle_of_the_line_and_its_mirror_image(boundary, sign, direction) -> None:
    torch.manual_seed(0)
    block = S4DBlock(3, d_state=6, direction=direction, boundary=boundary, options=MODES).double()
    circle = S4DBlock(3, d_state=6, direction=direction, boundary="wrapped", options=MODES).double()
    circle.load_state_dict(block.state_dict())
    x = torch.randn(3, 1, 11, 2, dtype=torch.float64)
    (walls,), (round_,) = scan_weights([((block,), 11, 1.0)]), scan_weights([((circle,), 22, 1.0)])
    expected = round_.scan(torch.cat([x, sign * x.flip(2)], dim=2))[:, :, :, :11]
    torch.testing.assert_close(walls.scan(x), expected)


def test_a_two_way_scan_with_tied_directions_keeps_the_symmetry_of_a_wall() -> None:
    torch.manual_seed(0)
    sweep = AxisSweep(3, axes=1, d_state=6, boundary="even", options=MODES).double()
    scan = sweep.scans[0]
    scan.back.load_state_dict(scan.ahead.state_dict())
    field = torch.randn(3, 10, 2, dtype=torch.float64)
    torch.testing.assert_close(sweep(field.flip(1)), sweep(field).flip(1))


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_each_axis_has_its_own_boundary(engine) -> None:
    from ssno.native.engine import use

    torch.manual_seed(0)
    model = SSNOConfig.tiny(n_dims=2, boundary=("wrapped", "even"), coordinates=False).build()
    frames = torch.randn(1, 4, 1, 12, 9)
    with torch.no_grad(), use(engine):
        shifted = model(frames.roll(5, dims=3))
        torch.testing.assert_close(shifted, model(frames).roll(5, dims=3), rtol=1e-4, atol=1e-5)
        apart = model(frames.roll(4, dims=4)) - model(frames).roll(4, dims=4)
    assert apart.abs().max() > 1e-3


def test_periodic_axes_are_circles_and_the_others_get_coordinates() -> None:
    config = SSNOConfig(n_dims=2).recommended(periodic=[True, False])
    assert config.boundaries() == ("wrapped", "zero")
    assert config.located_axes() == (1,)
    assert SSNOConfig.from_json(config.to_json()) == config
    assert config.build().lift.weight.shape[1] == config.in_channels + 1


@pytest.mark.usefixtures("as_users_call_it")
def test_boundaries_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="`boundary` must be one for all axes, or one for each of the 2"):
        SSNOConfig(n_dims=2, boundary=("zero",))
    with pytest.raises(ValueError, match="`boundary='even'` sums infinitely many images, which needs damping > 0"):
        SSNOConfig(boundary="even", modes=ModeOptions(damping="absent"))
    with pytest.raises(ValueError, match=r"`coordinate_axes` must lie in 0 ... 0, got \(1,\)"):
        SSNOConfig(coordinate_axes=(1,))
