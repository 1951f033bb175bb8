"""Native code on bfloat16 numbers: as exact as their eight bits allow, equal bits every time, a firm door."""

import logging

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ssno.base.device import threads
from ssno.base.memory import peak_memory
from ssno.layers.gate import GateFunction, plain_gate
from ssno.layers.pointwise import HeadFunction, plain_head
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native import build as library
from ssno.native import engine as precision
from ssno.native import operations
from ssno.native import operations as pool
from ssno.native.engine import computing, has_native_bf16, use
from ssno.ssm.scan import FusedScan, plain_scan

EPS = 2**-8
"""Half the distance of two bfloat16 numbers next to each other, relative."""

needs_bf16 = pytest.mark.skipif(not operations.available_bf16(), reason="this processor has no AVX512-BF16")
LAYOUTS = {
    "in order": lambda x: x,
    "gaps": lambda x: torch.randn(*x.shape[:-1], 2 * x.shape[-1] + 3).to(x.dtype)[..., : x.shape[-1]].copy_(x),
    "reversed": lambda x: x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim))),
    "negated view": lambda x: torch._neg_view(-x),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def assert_rounded(mine, exact, inputs: list[Tensor], grad: Tensor, *, places: float = 4.0) -> None:
    """Answer and gradients of `mine` are those of `exact` in float64, up to some roundings of single numbers."""
    given = [tensor.detach().requires_grad_() for tensor in inputs]
    wanted = [tensor.detach().double().requires_grad_() for tensor in inputs]
    out, true = mine(*given), exact(*wanted)
    pairs = [(out.detach(), true.detach())]
    found = torch.autograd.grad(out, given, grad)
    pairs += zip(found, torch.autograd.grad(true, wanted, grad.double()), strict=True)
    for number, (one, other) in enumerate(pairs):
        assert one.dtype == (out.dtype if number == 0 else given[number - 1].dtype)
        wrong = (one.double() - other).norm()
        assert wrong <= places * EPS * other.norm().clamp_min(1e-3), f"answer {number}: {wrong / other.norm():.2g}"


@needs_bf16
@layouts
@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (64, 2, 700), (5, 2, 33), (36, 1, 300)])
def test_the_gate_is_exact_up_to_rounding(layout, sizes, product) -> None:
    channels, directions, positions = sizes
    y, residual = layout(torch.randn(sizes).bfloat16()), layout(torch.randn(channels, positions).bfloat16())
    weight = torch.randn(directions, 2 * channels, channels) / channels**0.5
    inputs = [y, layout(weight), torch.randn(directions, 2 * channels), residual]
    assert_rounded(
        lambda y, w, b, r: GateFunction.apply(y, w, b, r, 2, product),
        lambda y, w, b, r: plain_gate(y, w, b, residual=r, residual_weight=2, product=product),
        inputs,
        layout(torch.randn(channels, positions).bfloat16()),
        places=8.0 if product else 4.0,  # of a single number both terms of a product's gradient may cancel
    )


@needs_bf16
@layouts
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (64, 256, 1, 500), (5, 30, 3, 77)])
def test_the_head_is_exact_up_to_rounding(layout, sizes) -> None:
    channels, wide, fields, positions = sizes
    inputs = [layout(torch.randn(channels, positions).bfloat16()), layout(torch.randn(wide, channels) / channels**0.5)]
    inputs += [torch.randn(wide), torch.randn(fields, wide) / wide**0.5, torch.randn(fields)]
    assert_rounded(HeadFunction.apply, plain_head, inputs, layout(torch.randn(fields, positions)))


@needs_bf16
@layouts
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1, 1), (2, 1, 64, 96), (2, 40, 25, 1), (3, 7, 9, 3), (2, 3, 37, 16), (1, 1, 5, 2), (1, 2, 130, 33)]
)
def test_the_scan_is_exact_up_to_rounding(layout, sizes, periodic) -> None:
    channels, outer, points, inner = sizes
    taps = torch.randn(2, channels, points) * torch.exp(-torch.arange(points) / 8.0)
    x, grad = torch.randn(sizes).bfloat16(), torch.randn(channels, 2, outer, points, inner).bfloat16()
    assert_rounded(
        lambda x, k: FusedScan.apply(x, k, 0b10, periodic),
        lambda x, k: plain_scan(x, k, backward=0b10, periodic=periodic),
        [layout(x), layout(taps)],
        layout(grad),
    )


@needs_bf16
def test_the_activations_are_exact_over_their_whole_range() -> None:
    y = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, -0.0, 80.0, -80.0, 1e4, -1e4])]).bfloat16()
    ones = torch.ones(1, 2, 1)
    out = operations.gate_forward(y[None, None], ones, torch.zeros(1, 2), None, 0)[0]
    active = functional.gelu(y.double())
    torch.testing.assert_close(out.double(), active * active.sigmoid(), rtol=3 * EPS, atol=1e-4)


@needs_bf16
def test_equal_runs_give_equal_bits() -> None:
    y, grad = torch.randn(64, 2, 1500).bfloat16(), torch.randn(64, 1500).bfloat16()
    weight, bias = torch.randn(2, 128, 64), torch.randn(2, 128)
    x, taps = torch.randn(64, 1, 32, 40).bfloat16(), torch.randn(2, 64, 32)
    lines = torch.randn(64, 2, 1, 32, 40).bfloat16()
    scanned = []
    for count in (1, 2, 2, 1):
        with threads(count):
            first, second = (operations.gate_backward(y, weight, bias, grad) for _ in range(2))
            scanned.append(operations.scan_backward(x, taps, lines, backward=2, periodic=False))
        assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert all(torch.equal(one, other) for pair in scanned for one, other in zip(pair, scanned[0], strict=True))


@needs_bf16
def test_the_door_refuses_what_is_mixed() -> None:
    y, weight, bias = torch.randn(4, 1, 8).bfloat16(), torch.randn(1, 8, 4), torch.randn(1, 8)
    with pytest.raises(ValueError, match=r"`weight` must be a dense float32 tensor .* of torch.bfloat16"):
        operations.gate_forward(y, weight.bfloat16(), bias, None, 0)
    with pytest.raises(ValueError, match=r"`residual` must be a dense bfloat16 tensor .* of torch.float32"):
        operations.gate_forward(y, weight, bias, torch.randn(4, 8), 1)
    with pytest.raises(ValueError, match=r"`grad` must be a dense bfloat16 tensor .* of torch.float32"):
        operations.gate_backward(y, weight, bias, torch.randn(4, 8))
    with pytest.raises(ValueError, match=r"`y` must be a dense float32 tensor .* of torch.float16"):
        operations.gate_forward(y.half(), weight, bias, None, 0)


def gradients(model: SSNO, frames: Tensor, number: str) -> dict[str, Tensor]:
    model.zero_grad()
    with computing(model, number):
        loss = model(frames.to(next(model.parameters()).dtype)).double().square().mean()
    loss.backward()
    return {name: p.grad.double().clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("engine", [pytest.param("auto", marks=needs_bf16), "torch"])
@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("name", ["ssno:tiny", "ssno-product:tiny"])
def test_gradients_of_a_whole_model_are_within_rounding(engine, name, n_dims) -> None:
    torch.manual_seed(0)
    model = SSNO(model_config(name, n_dims=n_dims))
    assert model.native_bf16
    frames = torch.randn(2, 5, 1, *(16, 8)[:n_dims])
    with use(engine):
        coarse = gradients(model, frames, "bf16")
    exact = gradients(model.double(), frames, "float64")
    wrong = {name: ((coarse[name] - exact[name]).norm() / exact[name].norm()).item() for name in exact}
    assert max(wrong.values()) < 20 * EPS, wrong
    whole = [torch.cat([values.flatten() for values in one.values()]) for one in (coarse, exact)]
    assert (whole[0] - whole[1]).norm() < 2 * EPS * whole[1].norm()


@needs_bf16
@pytest.mark.parametrize("kind", ["plain", "one way", "long", "finer"])
def test_streaming_remembers_float32_and_agrees_with_whole_trajectories(kind) -> None:
    torch.manual_seed(0)
    model = SSNO(model_config("ssno-uni:tiny")) if kind == "one way" else SSNO(SSNOConfig.tiny())
    frames = torch.randn(2, 5, 1, 300 if kind == "long" else 32)
    spacing = 0.5 if kind == "finer" else None
    with torch.no_grad(), computing(model.eval(), "bf16"):
        whole = model(frames, spacing=spacing)[:, -1]
        state = model.start(frames, spacing=spacing)
        streamed, state = model.step(frames[:, -1], state)
        newest = model.predict_next(frames, spacing=spacing)
    with torch.no_grad():
        exact = model(frames, spacing=spacing)[:, -1]
    assert (whole.dtype, streamed.dtype, state.buffer.dtype) == (torch.float32,) * 3
    for found in (whole, streamed, newest):
        assert 0 < (found - exact).norm() < 5 * EPS * exact.norm()


def test_without_the_instructions_autocast_does_it_and_one_line_says_so(monkeypatch, caplog) -> None:
    monkeypatch.setattr(operations, "tiled", lambda kind: False)
    precision._say_autocast.cache_clear()
    torch.manual_seed(0)
    model, frames = SSNO(SSNOConfig.tiny()), torch.randn(1, 4, 1, 16)
    assert not has_native_bf16(model, torch.device("cpu"))
    with caplog.at_level(logging.WARNING, logger="ssno"):
        found = [gradients(model, frames, "bf16") for _ in range(2)]
    assert [record.getMessage() for record in caplog.records] == [
        "bf16: SSNO is computed by torch.autocast on cpu, not by native code."
    ]
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    with pytest.raises(ValueError, match=r"`x` must be a dense float32 tensor"):
        operations.scan_forward(
            torch.ones(1, 1, 2, 2).bfloat16(), torch.ones(1, 1, 2), backward=0, periodic=False, direct=False
        )


def test_models_with_other_sweeps_are_left_to_autocast() -> None:
    assert not model_config("ssno-ff:tiny", n_dims=2).build().native_bf16
    assert SSNO(SSNOConfig.tiny()).native_bf16


def test_float32_without_tiles_computes_the_same(monkeypatch) -> None:
    y, weight, bias = torch.randn(6, 2, 700), torch.randn(2, 12, 6), torch.randn(2, 12)
    x, taps, head = torch.randn(3, 4, 37, 5), torch.randn(2, 3, 37), torch.randn(5, 70)
    maps = [torch.randn(shape) for shape in ((9, 5), (9,), (3, 9))]

    def answers() -> list[Tensor]:
        found = [operations.gate_forward(y, weight, bias, None, 0), *operations.gate_backward(y, weight, bias, y[:, 0])]
        found += [operations.scan_forward(x, taps, direct=False, backward=2, periodic=True)]
        found += [*operations.scan_backward(x, taps, found[-1], backward=2, periodic=True)]
        return [
            *found,
            operations.head_forward(head, *maps, torch.zeros(3)),
            *operations.head_backward(head, *maps, head[:3]),
        ]

    expected = answers()
    monkeypatch.setattr(operations, "tiled", lambda kind: False)
    assert library.load() is not None
    for mine, theirs in zip(answers(), expected, strict=True):
        assert (mine - theirs).norm() <= 1e-5 * theirs.norm()


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    pool._free.clear()
    like = torch.empty(0, dtype=torch.bfloat16)
    first = pool.pooled_empty(1024, 1024, like=like)
    place, view = first.data_ptr(), first[3:]
    assert (first.shape, first.dtype) == ((1024, 1024), torch.bfloat16)
    del first
    second = pool.pooled_empty(1024, 1024, like=like)
    assert second.data_ptr() != place, "a view still holds the first"
    del view
    assert pool.pooled_empty(1024, 512, like=torch.zeros(1)).data_ptr() == place
    assert peak_memory(lambda: pool.pooled_empty(1024, 1024, like=like)) == 2**21
