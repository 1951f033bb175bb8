"""Whatever the strides and sizes of the tensors, native code computes what PyTorch does, or refuses."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal

from ssno.base.device import threads
from ssno.layers.gate import gate
from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import ChannelMLP, HeadFunction
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native import operations
from ssno.native.engine import fused, use
from ssno.ssm.scan import plain_scan, scan_taps

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "in order": lambda x: x.clone(),
    "gaps": lambda x: torch.randn(*x.shape[:-1], 2 * x.shape[-1] + 3)[..., : x.shape[-1]].copy_(x),
    "every other": lambda x: torch.randn(*x.shape[:-1], 2 * x.shape[-1])[..., ::2].copy_(x),
    "axes reversed": lambda x: x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim))),
    "shifted": lambda x: torch.randn(x.numel() + 1)[1:].view(x.shape).copy_(x),
    "first axis expanded": lambda x: x[:1].clone().expand(x.shape),
    "last axis expanded": lambda x: x[..., :1].clone().expand(x.shape),
    "negated view": lambda x: torch._neg_view(-x),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def answers(operation, inputs, grad, *, engine) -> list[Tensor]:
    """The output with and without gradients, and the gradient of every input."""
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    with use(engine):
        out = operation(*inputs)
        with torch.no_grad():
            alone = operation(*inputs)
        return [out, alone, *torch.autograd.grad(out, inputs, grad)]


def assert_engines_agree(operation, inputs, grad) -> None:
    expected = answers(operation, [tensor.clone() for tensor in inputs], grad.clone(), engine="torch")
    for mine, theirs in zip(answers(operation, inputs, grad, engine="fused"), expected, strict=True):
        assert (mine - theirs).norm() <= 1e-4 * theirs.norm().clamp_min(1e-3)


@layouts
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 2, 300), (3, 1, 1), (4, 2, 70)])
def test_the_gate_takes_any_strides(layout, sizes) -> None:
    channels, directions, positions = sizes
    y, residual = torch.randn(sizes), torch.randn(channels, positions)
    weight, bias = torch.randn(directions, 2 * channels, channels), torch.randn(directions, 2 * channels)
    inputs = [layout(tensor) for tensor in (y, weight, bias, residual)]
    assert_engines_agree(lambda y, w, b, r: gate(y, w, b, residual=r, residual_weight=2), inputs, layout(residual))


@layouts
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 5, 2, 70), (4, 1, 1, 1)])
def test_the_head_takes_any_strides(layout, sizes) -> None:
    channels, wide, fields, positions = sizes
    shapes = ((channels, positions), (wide, channels), (wide,), (fields, wide), (fields,))
    assert_engines_agree(head, [layout(torch.randn(shape)) for shape in shapes], layout(torch.randn(fields, positions)))


def head(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return HeadFunction.apply(x, w1, b1, w2, b2)


@layouts
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 1, 40, 1), (2, 3, 9, 1), (2, 1, 9, 10), (2, 3, 7, 4)])
@pytest.mark.parametrize("periodic", [False, True])
def test_the_scan_takes_any_strides(layout, sizes, periodic) -> None:
    x, taps = torch.randn(sizes), torch.randn(2, sizes[0], sizes[2])
    scan = lambda x, taps: scan_taps(x, taps, ("forward", "backward"), periodic=periodic)  # noqa: E731
    assert_engines_agree(scan, [layout(x), layout(taps)], layout(torch.randn(sizes[0], 2, *sizes[1:])))


@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
@pytest.mark.parametrize("points", [1, 2, 257, 300])
def test_one_line_of_any_length_trains(points, boundary) -> None:
    model = SSNO(SSNOConfig.tiny(memory=MemoryOptions(0, d_state=8), boundary=boundary))
    assert_models_agree(model, torch.randn(1, 1, 1, points))


@pytest.mark.parametrize("grid", [(17, 17), (1, 1), (300, 1), (1, 260)])
def test_one_frame_of_any_shape_trains(grid) -> None:
    assert_models_agree(
        SSNO(model_config("ssno-vm:tiny", n_dims=2, memory=MemoryOptions(0, d_state=8))), torch.randn(1, 1, 1, *grid)
    )
    assert_models_agree(SSNO(SSNOConfig.tiny(n_dims=2)), torch.randn(1, 2, 1, *grid))


@layouts
def test_a_model_takes_frames_with_any_strides(layout) -> None:
    assert_models_agree(SSNO(SSNOConfig.tiny()), layout(torch.randn(2, 3, 1, 20)))


def assert_models_agree(model: nn.Module, frames: Tensor) -> None:
    found = {}
    for engine in ("torch", "fused"):
        model.zero_grad()
        with use(engine):
            out = model(frames)
            out.square().mean().backward()
        found[engine] = [out.detach(), *(p.grad.clone() for p in model.parameters())]
    whole = torch.cat([part.flatten() for part in found["torch"]]).norm()
    for mine, theirs in zip(*found.values(), strict=True):
        assert (mine - theirs).norm() <= 1e-4 * theirs.norm() + 1e-6 * whole


def test_weights_in_another_order_are_read_as_they_are() -> None:
    module = ChannelMLP(6, hidden=20, out_channels=3)
    orthogonal(module.narrow)
    module.widen.weight = nn.Parameter(torch.randn(6, 20).t())
    x = torch.randn(6, 50)
    with use("plain"):
        expected = module(x)
    with use("fused"):
        torch.testing.assert_close(module(x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"y": torch.randn(4, 2, 5, dtype=torch.float64)}, "`y` must be a dense float32 tensor .*torch.float64"),
        ({"weight": torch.randn(2, 8, 3)}, r"`weight` must be .* of shape \(2, 8, 4\), .* shape \(2, 8, 3\)"),
        ({"bias": torch.randn(1, 8)}, r"`bias` must be .* of shape \(2, 8\)"),
        ({"residual": torch.randn(4, 6)}, r"`residual` must be .* of shape \(4, 5\)"),
        ({"weight": torch.randn(2, 8, 4, device="meta")}, "`weight` must be .* on meta"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_the_gate_refuses_what_does_not_fit(wrong, match) -> None:
    fitting = {"y": torch.randn(4, 2, 5), "weight": torch.randn(2, 8, 4), "bias": torch.randn(2, 8)}
    with pytest.raises(ValueError, match=match):
        operations.gate_forward(**{"residual": None, **fitting, **wrong}, copies=1)
    if "residual" not in wrong:
        with pytest.raises(ValueError, match=match):
            operations.gate_backward(**{**fitting, **wrong}, grad=torch.randn(4, 5))


@pytest.mark.usefixtures("as_users_call_it")
def test_scan_and_head_refuse_what_does_not_fit() -> None:
    x, taps = torch.randn(2, 1, 9, 1), torch.randn(1, 2, 8)
    options = {"backward": 0, "periodic": False}
    with pytest.raises(ValueError, match=r"`kernels` must be .* of shape \(1, 2, 9\)"):
        operations.scan_forward(x, taps, direct=False, **options)
    with pytest.raises(ValueError, match=r"`grad_y` must be .* of shape \(2, 1, 1, 9, 1\)"):
        operations.scan_backward(x, torch.randn(1, 2, 9), torch.randn(2, 1, 1, 8, 1), **options)
    long, its_taps = torch.randn(1, 1, 9000, 9), torch.randn(1, 1, 9000)
    with pytest.raises(ValueError, match="at most 8192 points, got 9000"):
        operations.scan_forward(long, its_taps, direct=False, **options)
    with pytest.raises(ValueError, match="at most 8192 points, got 9000"):
        operations.scan_backward(long, its_taps, long[:, None], **options)
    with pytest.raises(ValueError, match=r"`b2` must be .* of shape \(2,\)"):
        operations.head_forward(*(torch.randn(s) for s in ((3, 4), (5, 3), (5,), (2, 5), (3,))))


def test_tensors_without_numbers_in_memory_are_left_to_pytorch() -> None:
    for engine in ("auto", "fused"):
        with use(engine):
            assert not fused(torch.randn(0, 3))
            assert fused(nn.Parameter(torch.randn(3)))
    for elsewhere in (torch.randn(3, device="meta"), torch.randn(3, 3).to_sparse()):
        assert not fused(elsewhere)
        with use("fused"), pytest.raises(ValueError, match="takes float32 tensors on the CPU"):
            fused(elsewhere)


@pytest.mark.parametrize("lines", [(1, 1), (1, 4), (3, 1), (2, 5), (1, 12), (1, 13), (70, 1)])
@pytest.mark.parametrize("points", [1, 15, 16, 17, 33, 65, 257])
@pytest.mark.parametrize("periodic", [False, True])
def test_a_few_lines_of_any_length(lines, points, periodic) -> None:
    """Lanes of points instead of lanes of lines: every remainder of 16 and 64 points, of 4 and 32 lines."""
    torch.manual_seed(0)
    x, taps = torch.randn(2, lines[0], points, lines[1]), torch.randn(2, 2, points)
    for given in (taps, nn.functional.pad(taps[..., :4], (0, max(0, points - 4)))):  # few taps, as memory has
        exact = plain_scan(x.double(), given.double()[..., :points], backward=2, periodic=periodic)
        for count in (1, 2):
            with threads(count):
                found = operations.scan_forward(x, given, backward=2, periodic=periodic, direct=False)
            assert (found - exact).norm() <= 1e-6 * exact.norm()
