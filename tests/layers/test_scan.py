"""Two-way scans and sweeps over 1D, 2D and 3D grids."""

import pytest
import torch
from tests.losses import losses

from ssno.layers import ModeOptions, RasterScan, S4DBlock, SelectiveBlock, TemporalMemory, fast_start
from ssno.layers.axial import AxialScan, BidirectionalScan, along
from ssno.layers.memory import MemoryOptions
from ssno.models import SSNO, SSNOConfig
from ssno.ssm.initialise import INITIALISATIONS


def test_two_way_scan_with_tied_directions_commutes_with_reflection() -> None:
    scan = BidirectionalScan(4, d_state=6).double()
    scan.back.load_state_dict(scan.ahead.state_dict())
    x = torch.randn(3, 4, 13, dtype=torch.float64)
    torch.testing.assert_close(scan(x.flip(-1)), scan(x).flip(-1), atol=1e-12, rtol=0)


def test_directions_are_not_tied_by_default() -> None:
    scan = BidirectionalScan(4, d_state=6).double()
    x = torch.randn(1, 4, 13, dtype=torch.float64)
    assert (scan(x.flip(-1)) - scan(x).flip(-1)).abs().max() > 1e-3


@pytest.mark.parametrize(("residual", "copies"), [("sum", 1), ("path", 2), ("none", 0)])
def test_residual_says_how_often_the_input_is_added(residual, copies) -> None:
    scan = BidirectionalScan(4, d_state=6, residual=residual)
    x = torch.randn(2, 4, 9)
    torch.testing.assert_close(scan(x), scan.ahead(x) + scan.back(x) + copies * x)


@pytest.mark.parametrize("boundary", ["periodic", "periodic-truncated"])
def test_periodic_scans_commute_with_translation(boundary) -> None:
    sweep = AxialScan(4, axes=2, d_state=6, boundary=boundary)
    field = torch.randn(4, 8, 9, 2)
    moved = sweep(field.roll((3, 2), dims=(1, 2)), spacing=(1.0, 1.0))
    torch.testing.assert_close(moved, sweep(field, spacing=(1.0, 1.0)).roll((3, 2), dims=(1, 2)), atol=1e-5, rtol=1e-5)


def test_zero_boundary_does_not_commute_with_translation() -> None:
    sweep = AxialScan(4, axes=1, d_state=6)
    field = torch.randn(4, 8, 2)
    moved = sweep(field.roll(3, dims=1), spacing=(1.0,))
    assert (moved - sweep(field, spacing=(1.0,)).roll(3, dims=1)).abs().max() > 1e-3


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_sweep_scans_each_axis_in_turn(axes) -> None:
    sweep = AxialScan(3, axes=axes, d_state=4).double()
    field = torch.randn(3, *(4, 5, 6)[:axes], 2, dtype=torch.float64)
    expected = field
    for axis in range(1, 1 + axes):
        lines = expected.movedim((0, axis), (-2, -1))  # *rest b h l
        scanned = sweep.scans[axis - 1](lines.flatten(0, -3)).unflatten(0, lines.shape[:-2])
        expected = scanned.movedim((-2, -1), (0, axis))
    torch.testing.assert_close(sweep(field, spacing=(1.0,) * axes), expected)


def test_after_one_sweep_every_point_has_heard_from_every_other() -> None:
    sweep = AxialScan(2, axes=2, d_state=4).double()
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
        BidirectionalScan(4, residual="both")
    with pytest.raises(ValueError, match="`boundary` must be one of 'zero', 'periodic', .*got 'open'"):
        BidirectionalScan(4, boundary="open")


def test_two_way_scan_trains_inside_an_ordinary_module() -> None:
    model = torch.nn.Sequential(torch.nn.Conv1d(1, 8, 1), BidirectionalScan(8, d_state=4), torch.nn.Conv1d(8, 1, 1))
    x = torch.randn(4, 1, 16)
    found = losses(model, x, x.cumsum(-1))
    assert found[-1] < found[0]


def drawn(make) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return dict(make().state_dict())


def alike(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("layer", [S4DBlock, SelectiveBlock, BidirectionalScan])
def test_layers_without_options_start_as_the_recipe_does(layer) -> None:
    recipe = SSNOConfig(n_dims=1).recommended(periodic=False).modes
    assert alike(drawn(lambda: layer(4, d_state=6)), drawn(lambda: layer(4, d_state=6, options=recipe)))
    assert not alike(drawn(lambda: layer(4, d_state=6)), drawn(lambda: layer(4, d_state=6, options=ModeOptions())))


@pytest.mark.parametrize("sweep", [AxialScan, RasterScan])
@pytest.mark.parametrize(("boundary", "periodic"), [("zero", False), ("periodic", True)])
def test_sweeps_without_options_start_as_the_recipe_does(sweep, boundary, periodic) -> None:
    recipe = SSNOConfig(n_dims=2).recommended(periodic=periodic).modes
    made = {"axes": 2, "d_state": 6, "boundary": boundary}
    assert alike(drawn(lambda: sweep(4, **made)), drawn(lambda: sweep(4, **made, options=recipe)))


def test_a_fast_start_keeps_what_else_the_options_say() -> None:
    options = fast_start(ModeOptions(damping="fixed", resolution_transfer="resample"))
    assert (options.damping, options.resolution_transfer, options.kernel_init_norm) == ("fixed", "resample", 2.0)


def test_models_and_memory_keep_the_start_of_the_paper() -> None:
    model = SSNO(hidden_channels=4, d_state=6, memory=MemoryOptions(d_state=6))
    legs = INITIALISATIONS["legs"](6)
    for modes in (model.blocks_before[0].scans[0].ahead.modes, model.memory.block.modes):
        torch.testing.assert_close(modes.frequency, legs.expand(4, 3).float())
        assert modes.log_step.exp().max() <= 0.1
    torch.testing.assert_close(TemporalMemory(4, window=3, d_state=6).block.modes.frequency, legs.expand(4, 3).float())


def test_a_layer_of_an_own_network_learns_at_once() -> None:
    """The derivative of periodic fields: after 60 steps the paper's start is more than twice as far from it."""
    phase = torch.rand(32, 3, 1, generator=torch.Generator().manual_seed(0)) * 2 * torch.pi
    angle = 2 * torch.pi * torch.arange(1, 4)[:, None] * torch.arange(32) / 32 + phase
    x, y = torch.sin(angle).sum(1, keepdim=True), torch.cos(angle).sum(1, keepdim=True)

    def error(**start) -> float:
        torch.manual_seed(0)
        layers = [BidirectionalScan(16, d_state=8, boundary="periodic", **start) for _ in range(2)]
        model = torch.nn.Sequential(torch.nn.Conv1d(1, 16, 1), *layers, torch.nn.Conv1d(16, 1, 1))
        return losses(model, x, y, steps=60)[-1]

    assert error() < 0.5 * error(options=ModeOptions())
