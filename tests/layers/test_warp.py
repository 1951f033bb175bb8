"""Features carried along displacements: against a formula, all engines, derivatives, symmetry, grids, walls."""

import pytest
import torch
from torch import Tensor

from ssno.layers.axial import BlockOptions, ProductAxialScan
from ssno.layers.modes import ModeOptions
from ssno.layers.warp import Warp, plain_warp, warp_grid, warped
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native import operations
from ssno.native.engine import computing, use
from ssno.native.operations import WarpGrid

LOCAL = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)
GRIDS = {
    "a circle": WarpGrid((12,), (1,), (True,), (1.0,)),
    "a line": WarpGrid((5,), (1,), (False,), (0.7,)),
    "a finer circle": WarpGrid((12,), (3,), (True,), (1.0,)),
    "a cylinder": WarpGrid((6, 5), (2, 1), (True, False), (1.0, 1.3)),
    "a box": WarpGrid((4, 3, 6), (1, 1, 2), (True, False, True), (1.0, 0.5, 1.0)),
    "single points": WarpGrid((1, 2), (1, 2), (True, False), (1.0, 1.0)),
}


def formula(values: Tensor, displacements: Tensor, grid: WarpGrid) -> Tensor:
    """Point by point: along each axis the two neighbours of the displaced point on the point's own copy."""
    out = torch.zeros_like(values)
    indices = list(torch.cartesian_prod(*[torch.arange(n) for n in grid.points]).view(-1, len(grid.points)).tolist())
    for p, here in enumerate(indices):
        for b in range(values.shape[1]):
            for head in range(values.shape[2]):
                corners = [((), 1.0)]
                for axis, index in enumerate(here):
                    copies, cells = grid.copies[axis], grid.points[axis] // grid.copies[axis]
                    moved = displacements[p, b, head, axis].item() * grid.cells[axis]
                    low = index // copies + int(torch.tensor(moved).floor())
                    part = moved - int(torch.tensor(moved).floor())
                    if grid.periodic[axis]:
                        ends = low % cells, (low + 1) % cells
                    else:
                        ends = min(max(low, 0), cells - 1), min(max(low + 1, 0), cells - 1)
                    both = zip(ends, (1 - part, part), strict=True)
                    both = [(end * copies + index % copies, weight) for end, weight in both]
                    corners = [((*at, end), w * weight) for at, w in corners for end, weight in both]
                for at, weight in corners:
                    out[p, b, head] += weight * values[indices.index(list(at)), b, head]
    return out


def inputs(grid: WarpGrid, *, channels: int = 3, reach: float = 4.0) -> tuple[Tensor, Tensor]:
    points = torch.tensor(grid.points).prod().item()
    return torch.randn(points, 2, 2, channels), reach * torch.randn(points, 2, 2, len(grid.points))


@pytest.mark.parametrize("engine", ["auto", "torch"])
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_it_is_multilinear_interpolation_at_the_displaced_points(grid, engine) -> None:
    values, displacements = inputs(grid)
    with use(engine):
        torch.testing.assert_close(warped(values, displacements, grid), formula(values, displacements, grid))


@pytest.mark.skipif(not operations.available(), reason="needs native code")
@pytest.mark.parametrize("channels", [1, 8, 16])
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_native_code_and_pytorch_agree_with_their_gradients(grid, channels) -> None:
    values, displacements = (tensor.requires_grad_() for tensor in inputs(grid, channels=channels))
    grad = torch.randn_like(values)
    found = []
    for engine in ("fused", "plain"):
        with use(engine):
            out = warped(values, displacements, grid)
            found.append((out, *torch.autograd.grad(out, (values, displacements), grad)))
    torch.testing.assert_close(*found, atol=2e-5, rtol=1e-4)


@pytest.mark.skipif(not operations.available(), reason="needs native code")
def test_gradients_do_not_depend_on_how_inputs_lie_in_memory() -> None:
    grid = GRIDS["a box"]
    values, displacements = inputs(grid)
    transposed = displacements.transpose(0, -1).contiguous().transpose(0, -1)
    grads = []
    for given in (displacements, transposed):
        both = values.clone().requires_grad_(), given.detach().requires_grad_()
        with use("fused"):
            grads.append(torch.autograd.grad(warped(*both, grid).square().sum(), both))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*grads, strict=True))


@pytest.mark.skipif(not operations.available(), reason="needs native code")
def test_threads_and_strides_change_no_bit() -> None:
    grid = GRIDS["a cylinder"]
    values, displacements = inputs(grid, channels=8)
    grad, before = torch.randn_like(values), torch.get_num_threads()
    wide = torch.randn(*values.shape[:-1], 16)[..., ::2].copy_(values)
    found = []
    try:
        for threads, given in ((1, values), (2, values), (4, wide)):
            torch.set_num_threads(threads)
            found.append(
                [
                    operations.warp_forward(given, displacements, grid),
                    *operations.warp_backward(given, displacements, grad, grid),
                ]
            )
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.skipif(not operations.available(), reason="needs native code")
@pytest.mark.usefixtures("as_users_call_it")
def test_native_code_refuses_what_does_not_fit() -> None:
    grid = GRIDS["a cylinder"]
    values, displacements = inputs(grid)
    with pytest.raises(ValueError, match=r"`displacements` must be .* of shape \(30, 2, 2, 2\)"):
        operations.warp_forward(values, displacements[..., :1], grid)
    with pytest.raises(ValueError, match=r"`values` must be .* of shape \(30, 2, 2, 3\)"):
        operations.warp_forward(values[:-1], displacements, grid)
    with pytest.raises(ValueError, match=r"`grad` must be .* of shape \(30, 2, 2, 3\)"):
        operations.warp_backward(values, displacements, values[:, :1], grid)
    with pytest.raises(ValueError, match="`grid` must have one to three axes of whole copies"):
        operations.warp_forward(values, displacements, grid._replace(copies=(4, 1)))


@pytest.mark.parametrize("wild", [torch.inf, -torch.inf, torch.nan, 1e37])
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_displacement_that_is_no_number_gives_none_and_reads_nothing_outside(engine, wild) -> None:
    grid = GRIDS["a cylinder"]
    values, displacements = inputs(grid)
    displacements[3, 1, 0, 1] = wild
    with use(engine):
        out = warped(values, displacements, grid)
    assert out[3, 1, 0].isfinite().all() == (wild == 1e37)
    assert out[3, 1, 0].isnan().sum() + out.isfinite().sum() == out.numel()


def test_derivatives() -> None:
    grid = GRIDS["a cylinder"]
    values, displacements = (tensor.double().requires_grad_() for tensor in inputs(grid))
    assert torch.autograd.gradcheck(lambda *given: plain_warp(*given, grid), (values, displacements))
    block = ProductAxialScan(2, axes=1, d_state=2, boundary="periodic", options=LOCAL, warp_heads=1)
    field = torch.randn(2, 5, 1, requires_grad=True)
    (once,) = torch.autograd.grad(block(field).square().sum(), field, create_graph=True)
    with use("plain"):
        (plainly,) = torch.autograd.grad(block(field).square().sum(), field, create_graph=True)
    torch.testing.assert_close(once, plainly, atol=1e-4, rtol=1e-3)
    twice = [torch.autograd.grad(one.square().sum(), field)[0] for one in (once, plainly)]
    torch.testing.assert_close(*twice, atol=1e-3, rtol=1e-3)


def test_a_whole_number_of_cells_moves_a_field() -> None:
    """One head that carries its channels as they are, everywhere by two cells against x and one along y."""
    grid, channels = WarpGrid((6, 5), (1, 1), (True, True), (1.0, 1.0)), 4
    warp = Warp(channels, axes=2, heads=1)
    with torch.no_grad():
        for linear in (warp.values, warp.out):
            linear.weight.copy_(torch.eye(channels))
        warp.out.bias.zero_()
        warp.displacements.weight.zero_()
        warp.displacements.bias.copy_(torch.tensor([2.0, -1.0]))
    field = torch.randn(channels, 6, 5, 3)
    torch.testing.assert_close(warp(field, field, grid), field.roll((-2, 1), (1, 2)))


def test_a_shifted_field_gives_the_shifted_answer() -> None:
    block = ProductAxialScan(4, axes=2, d_state=4, boundary="periodic", options=LOCAL, warp_heads=2)
    field = torch.randn(4, 6, 5, 2)
    torch.testing.assert_close(
        block(field).roll((2, 1), (1, 2)), block(field.roll((2, 1), (1, 2))), atol=1e-4, rtol=1e-4
    )


def test_on_a_finer_grid_every_copy_of_the_learned_one_is_carried_by_itself() -> None:
    torch.manual_seed(0)
    model = SSNO(model_config("ssno-warp:tiny", n_dims=2, boundary="periodic", coordinates=False))
    coarse = torch.randn(1, 5, 1, 6, 8)
    finer = coarse.repeat_interleave(2, 3).repeat_interleave(3, 4)
    expected = model(coarse).repeat_interleave(2, 3).repeat_interleave(3, 4)
    torch.testing.assert_close(model(finer, spacing=(1 / 2, 1 / 3)), expected, atol=1e-5, rtol=1e-4)


def test_displacements_are_lengths_on_grids_that_hold_no_copies() -> None:
    """Beside walls, points half as far apart: the same displacement is twice as many cells of the finer grid."""
    block = ProductAxialScan(4, axes=1, d_state=4, boundary="zero", options=LOCAL, warp_heads=2)
    weights = block.scans_on((9,), (0.75,))
    from ssno.layers.block import scan_weights

    grid = warp_grid((9,), scan_weights(weights))
    assert grid.periodic == (False,)
    assert grid.copies == (1,)
    assert grid.cells[0] == pytest.approx(1 / 0.75)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"warp_heads": 4}, "`block.warp_heads` must be .* of block.kind='product', got 4 with block.kind='axial'"),
        ({"kind": "product", "warp_heads": -1}, "`block.warp_heads` must be a number of displacements .* got -1"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_options_are_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        BlockOptions(**fields)


@pytest.mark.usefixtures("as_users_call_it")
def test_heads_share_the_channels_evenly() -> None:
    with pytest.raises(ValueError, match="`block.warp_heads` must divide the channels .*: 3 does not divide 16"):
        SSNOConfig.tiny(block=BlockOptions("product", warp_heads=3)).build()


@pytest.mark.skipif(not operations.available_bf16(), reason="needs AVX512-BF16")
def test_in_bf16_features_are_rounded_and_displacements_are_not() -> None:
    torch.manual_seed(0)
    model = SSNO(model_config("ssno-warp:tiny", n_dims=2, boundary="periodic"))
    frames = torch.randn(2, 5, 1, 8, 8)
    exact = model(frames)
    with computing(model, "bf16"):
        rounded = model(frames)
    assert rounded.dtype == torch.float32
    error = (rounded - exact).norm() / exact.norm()
    assert 1e-5 < error < 3e-2
