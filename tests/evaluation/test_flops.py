"""Counting operations: known computations, whole models against arithmetic, nothing left uncounted."""

import math
from functools import partial

import pytest
import torch
from torch.nn import functional

from ssno.evaluation.flops import (
    GPU,
    TRANSCENDENTAL,
    OperatorCall,
    count_calls,
    count_flops,
    predicted_seconds,
    training_calls,
)
from ssno.layers.gate import gate
from ssno.layers.memory import MemoryOptions
from ssno.layers.pointwise import ChannelMLP
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.registry import MODELS, model_config
from ssno.models.ssno import SSNOConfig
from ssno.models.wrapped import WrappedModule
from ssno.native.engine import fused
from ssno.ssm.scan import scan_taps

needs_fused = pytest.mark.skipif(not fused(torch.zeros(1)), reason="the fused engine is not there")
BOTH_WAYS = ("forward", "backward")
REAL = torch.randn(4, 8)
COMPLEX = torch.randn(4, 8, dtype=torch.cfloat)
FIELD = torch.randn(2, 3, 16)


@pytest.mark.parametrize(
    ("kind", "run", "expected"),
    [
        ("matrix", lambda: REAL @ REAL.T, 2 * 4 * 4 * 8),
        ("matrix", lambda: COMPLEX @ COMPLEX.T, 8 * 4 * 4 * 8),
        ("matrix", lambda: functional.linear(REAL, torch.ones(5, 8), torch.ones(5)), 2 * 4 * 5 * 8 + 4 * 5),
        ("matrix", lambda: torch.linalg.solve(torch.eye(6), torch.ones(6, 2)), 2 / 3 * 6**3 + 2 * 6**2 * 2),
        ("convolution", lambda: functional.conv1d(FIELD, torch.ones(5, 3, 3)), 2 * 2 * 5 * 14 * 3 * 3),
        ("transform", lambda: torch.fft.fft(COMPLEX), 5 * 4 * 8 * 3),
        ("transform", lambda: torch.fft.rfft(REAL), 2.5 * 4 * 8 * 3),
        ("transform", lambda: torch.fft.irfft(COMPLEX, n=8), 2.5 * 4 * 8 * 3),
        ("transform", lambda: torch.fft.rfft(REAL, n=16), 2.5 * 4 * 16 * 4),
        ("transform", lambda: torch.fft.rfftn(REAL), 2.5 * 32 * 5),
        ("pointwise", lambda: REAL * REAL, 32),
        ("pointwise", lambda: COMPLEX * COMPLEX, 6 * 32),
        ("pointwise", lambda: COMPLEX * REAL, 2 * 32),
        ("pointwise", lambda: COMPLEX + COMPLEX, 2 * 32),
        ("pointwise", lambda: REAL.clone().add_(1), 32),
        ("pointwise", lambda: REAL.exp(), 32 * TRANSCENDENTAL),
        ("pointwise", lambda: REAL.sum(0), 32),
        ("pointwise", lambda: functional.layer_norm(REAL, (8,)), 8 * 32),
        ("pointwise", lambda: functional.batch_norm(FIELD, torch.zeros(3), torch.ones(3)), 2 * 96),
        ("pointwise", lambda: functional.max_pool1d(FIELD, 2), 2 * 48),
    ],
)
def test_known_computations_cost_what_the_rules_say(kind, run, expected) -> None:
    flops = count_flops(run)
    assert not flops.unknown
    assert getattr(flops, kind) == pytest.approx(expected)
    assert flops.total == pytest.approx(expected)


def test_views_and_copies_are_free() -> None:
    assert count_flops(lambda: torch.cat([REAL.T.reshape(-1).clone(), REAL.flatten()])[3:]).total == 0


def test_backward_passes_are_counted() -> None:
    weight = torch.randn(8, 5, requires_grad=True)
    given = REAL.clone().requires_grad_()
    flops = count_flops(lambda: (given @ weight).sum().backward())
    assert flops.matrix == 3 * 2 * 4 * 5 * 8


def test_a_whole_ffno_costs_what_arithmetic_says() -> None:
    model = FFNOConfig(memory=MemoryOptions(0), n_modes=16).build()
    points, frames, width = 64, 4, 64
    with torch.no_grad():
        flops = count_flops(lambda: model(torch.randn(1, frames, 1, points)))
    everywhere = points * frames
    assert flops.transform == 4 * 2 * 2.5 * width * everywhere * math.log2(points)
    spectral = 4 * 8 * 16 * width**2 * frames
    feed_forward = 4 * everywhere * ((2 * width + 1) * 128 + (2 * 128 + 1) * width)
    ends = everywhere * ((2 * 2 + 1) * width + (2 * width + 1) * 128 + 2 * 128 + 1)
    assert flops.matrix == spectral + feed_forward + ends
    assert flops.kernel == flops.convolution == 0


def test_making_kernels_is_listed_apart_and_does_not_grow_with_the_batch() -> None:
    model = SSNOConfig.tiny().build()
    with torch.no_grad():
        one, four = (count_flops(lambda b=b: model(torch.randn(b, 4, 1, 32))) for b in (1, 4))
    assert one.kernel == four.kernel > 0
    assert four.total > 2 * one.total - one.kernel


@pytest.mark.parametrize(("name", "n_dims"), [*((name, n_dims) for name in MODELS for n_dims in (1, 2)), ("unet", 3)])
def test_no_operation_of_any_model_goes_uncounted(name, n_dims) -> None:
    model = model_config(f"{name}:tiny", n_dims=n_dims).build()
    frames = torch.randn(2, 4, 1, *(16,) * n_dims)
    learns = any(True for _ in model.parameters())
    counted = count_flops(lambda: model(frames).square().mean().backward() if learns else model(frames))
    assert not counted.unknown, "give these operations a rule in ssno.evaluation.flops"

    def stream() -> None:
        state, frame = model.start(frames), frames[:, -1]
        for _ in range(2):
            frame, state = model.step(frame, state)

    with torch.no_grad():
        model.eval()
        assert not count_flops(stream).unknown
        assert not count_flops(lambda: model(frames)).unknown


@pytest.mark.parametrize(
    "config",
    [
        GKTConfig.tiny(),
        SSNOConfig.tiny(memory=MemoryOptions(d_state=8, kernel="s4")),
    ],
)
def test_options_are_counted_too(config) -> None:
    model, frames = config.build(), torch.randn(1, 4, 1, 16)
    assert not count_flops(lambda: model(frames).square().mean().backward()).unknown


WEIGHT, BIAS = torch.randn(2, 8, 4), torch.randn(2, 8)
SCANNED, LINES, TAPS = torch.randn(4, 2, 70), torch.randn(4, 3, 9, 10), torch.randn(2, 4, 9)
head = ChannelMLP(4, hidden=5, out_channels=3)


@needs_fused
@pytest.mark.parametrize(
    "run",
    [
        lambda: gate(SCANNED, WEIGHT, BIAS),
        lambda: gate(SCANNED, WEIGHT, BIAS, residual=SCANNED[:, 0], residual_weight=2),
        lambda: head(SCANNED[:, 0]),
        lambda: scan_taps(LINES, TAPS, BOTH_WAYS, periodic=True),
    ],
)
def test_native_code_costs_what_its_mathematics_costs_written_out(run) -> None:
    with torch.no_grad():
        native, written_out = count_flops(run, engine="fused"), count_flops(run)
    assert native.matrix == written_out.matrix > 0
    assert native.pointwise == written_out.pointwise
    assert not native.unknown


@needs_fused
def test_an_open_line_takes_half_the_products_of_a_circle() -> None:
    def scan(periodic: bool) -> float:
        run = partial(scan_taps, LINES, TAPS, BOTH_WAYS, periodic=periodic)
        with torch.no_grad():
            return count_flops(run, engine="fused").matrix

    assert scan(False) / scan(True) == (9 + 1) / (2 * 9)


@needs_fused
def test_a_fused_step_makes_products_again_instead_of_keeping_them() -> None:
    model, frames = SSNOConfig.tiny(memory=MemoryOptions(0, d_state=8)).build(), torch.randn(2, 4, 1, 16)
    once, step = (
        count_flops(run, engine="fused").matrix
        for run in (lambda: model(frames), lambda: model(frames).square().mean().backward())
    )
    assert 3 * once < step < 4 * once


def test_unknown_operations_are_named() -> None:
    assert count_flops(lambda: torch.special.bessel_j0(REAL)).unknown == {"special_bessel_j0"}


def test_wrapped_modules_are_counted_too() -> None:
    model = WrappedModule(torch.nn.Conv1d(4, 1, 3, padding=1), frames_as_channels=4)
    assert count_flops(lambda: model(torch.randn(1, 4, 1, 16))).convolution == 2 * 16 * 4 * 3


def test_bytes_are_those_of_tensors_read_and_written() -> None:
    wide = torch.ones(1, 8).expand(4, 8)
    with torch.no_grad():
        calls = count_calls(lambda: (REAL.T @ wide).add_(1).copy_(torch.ones(8, 8)).view(64)[3:])
    assert [(c.name, c.bytes) for c in calls] == [
        ("mm", 4 * (32 + 8 + 64)),  # what is expanded is read once
        ("add", 4 * (64 + 64)),
        ("ones", 4 * 64),
        ("copy", 4 * (64 + 64)),
    ]


@pytest.mark.parametrize("name", ["ssno", "ffno", "fno", "unet"])
def test_a_training_step_without_numbers_is_the_one_that_is_executed(name) -> None:
    config = model_config(f"{name}:tiny").for_grid((32,))
    counted = training_calls(config, (32,), batch=2, frames=12)
    model, frames = config.build(), torch.randn(2, 12, config.in_channels, 32)
    executed = count_calls(lambda: model(frames).square().mean().backward())
    assert [(c.name, c.operations, c.bytes) for c in counted] == [(c.name, c.operations, c.bytes) for c in executed]
    assert not any(call.kind == "unknown" for call in counted)


def test_a_prediction_takes_the_longer_of_arithmetic_and_memory() -> None:
    gpu = GPU("made up", operations=100.0, bytes=10.0)
    calls = [OperatorCall("mm", "matrix", 500.0, 20), OperatorCall("add", "pointwise", 10.0, 30)]
    assert predicted_seconds(calls, gpu) == (5.0 + 3.0, 5.0)


@needs_fused
def test_bytes_of_native_code_are_counted() -> None:
    y, weight, bias = torch.randn(6, 1, 50), torch.randn(1, 12, 6), torch.randn(1, 12)
    with torch.no_grad():
        calls = [c for c in count_calls(lambda: gate(y, weight, bias), engine="fused") if c.kind == "native"]
    assert [(c.name, c.bytes) for c in calls] == [("gate_forward", 4 * (300 + 72 + 12 + 300))]
