"""All engines give the same answers and gradients, each the same bits run after run."""

import copy

import pytest
import torch

from ssno.base.device import threads
from ssno.layers.gate import GateFunction, gate, plain_gate
from ssno.layers.memory import MemoryOptions
from ssno.layers.modes import ModeOptions
from ssno.layers.pointwise import ChannelMLP, HeadFunction
from ssno.models.reference import ReferenceSSNO
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native.engine import fused, use
from ssno.ssm.convolution import convolve_each_way
from ssno.ssm.scan import FEW_LINES, FusedScan, prepared_taps, scan_taps


def answers(model, x, grad) -> list[torch.Tensor]:
    """The output, the gradient of the input, and those of all parameters."""
    model.zero_grad()
    x = x.clone().requires_grad_()
    out = model(x)
    out.backward(grad)
    return [out.detach(), x.grad, *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def assert_close(found, expected, *, tolerance: float) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine - theirs).norm() <= tolerance * theirs.norm().clamp_min(1e-6)


GRIDS = [(32,), (33,), (12, 20), (4, 5, 6)]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
def test_engines_agree(grid, boundary) -> None:
    torch.manual_seed(0)
    config = SSNOConfig(
        n_dims=len(grid), boundary=boundary, hidden_channels=16, d_state=8, memory=MemoryOptions(d_state=8)
    )
    model, x, grad = SSNO(config), torch.randn(3, 5, 1, *grid), torch.randn(3, 5, 1, *grid)
    with use("plain"):
        expected = answers(copy.deepcopy(model).double(), x.double(), grad.double())
    tolerance = 2e-4 if boundary == "periodic" else 2e-5  # summing periodic images magnifies rounding
    for engine in ("torch", "fused"):
        with use(engine):
            assert_close(answers(model, x, grad), expected, tolerance=tolerance)


@pytest.mark.parametrize("variant", ["ssno-uni", "ssno-vm", "ssno-ff"])
def test_engines_agree_for_the_variants(variant) -> None:
    torch.manual_seed(0)
    model = model_config(f"{variant}:tiny", n_dims=2).build()
    x, grad = torch.randn(2, 4, 1, 8, 9), torch.randn(2, 4, 1, 8, 9)
    with use("plain"):
        expected = answers(model, x, grad)
    for engine in ("torch", "fused"):
        with use(engine):
            assert_close(answers(model, x, grad), expected, tolerance=1e-5)


@pytest.mark.parametrize("engine", ["torch", "fused"])
@pytest.mark.parametrize("grid", [(64,), (16, 16)])
def test_equal_runs_give_equal_bits(engine, grid) -> None:
    torch.manual_seed(0)
    model = SSNO(SSNOConfig.tiny(n_dims=len(grid)))
    x, grad = torch.randn(8, 6, 1, *grid), torch.randn(8, 6, 1, *grid)
    with use(engine), threads(2):
        first = answers(model, x, grad)
        for _ in range(20):  # a race shows rarely
            for mine, theirs in zip(answers(model, x, grad), first, strict=True):
                assert torch.equal(mine, theirs)


@pytest.mark.parametrize("grid", [(24,), (9, 8), (4, 5, 6)])
@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_the_network_in_one_file_agrees(grid, boundary) -> None:
    torch.manual_seed(0)
    model = SSNO(SSNOConfig.tiny(n_dims=len(grid), boundary=boundary, coordinates=boundary == "zero")).double()
    x = torch.randn(2, 6, 1, *grid, dtype=torch.float64)
    grad = torch.randn(2, 6, 1, *grid, dtype=torch.float64)
    reference = model.reference()
    assert [name for name, _ in reference.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert_close(answers(model, x, grad)[2:], answers(reference, x, grad)[2:], tolerance=1e-9)
    torch.testing.assert_close(model(x), reference(x), rtol=1e-10, atol=1e-12)


def test_the_reference_says_what_it_does_not_cover() -> None:
    for fields in (
        {"boundary": "dirichlet"},
        {"memory": MemoryOptions(kernel="s4")},
        {"frames_as_channels": 2, "memory": MemoryOptions(0)},
    ):
        with pytest.raises(ValueError, match="The reference has boundary='zero' or 'periodic'"):
            SSNO(SSNOConfig.tiny(**fields)).reference()


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
@pytest.mark.parametrize("given", [2, 4, 6])
def test_the_reference_streams_and_rolls_out_like_the_model(boundary, given) -> None:
    torch.manual_seed(0)
    model = SSNO(SSNOConfig.tiny(boundary=boundary)).double()
    reference, x = model.reference(), torch.randn(2, given, 1, 16, dtype=torch.float64)
    state, frame, frames = model.start(x), x[:, -1], []
    other, newest, streamed = reference.start(x), x[:, -1], []
    for _ in range(5):
        frame, state = model.step(frame, state)
        newest, other = reference.step(newest, other)
        frames.append(frame)
        streamed.append(newest)
    expected = torch.stack(frames, 1)
    torch.testing.assert_close(reference.rollout(x, 5), expected, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(torch.stack(streamed, 1), expected, rtol=1e-9, atol=1e-10)


def test_a_new_reference_model_is_the_papers_and_gives_its_weights_to_the_fast_one() -> None:
    torch.manual_seed(0)
    reference = ReferenceSSNO(n_dims=1)
    assert sum(parameter.numel() for parameter in reference.parameters()) == 203_713
    model = SSNO(n_dims=1)
    model.load_state_dict(reference.state_dict())
    x = torch.randn(1, 5, 1, 24)
    torch.testing.assert_close(model(x), reference(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("lines", [(1, 1), (5, 1), (1, 3), (1, FEW_LINES), (9, 1), (3, 5), (2, 17)])
@pytest.mark.parametrize("length", [1, 7, 8, 33, 64])
def test_the_fused_scan_is_the_convolution(periodic, lines, length) -> None:
    torch.manual_seed(0)
    outer, inner = lines
    x = torch.randn(3, outer, length, inner, requires_grad=True)
    taps = torch.randn(2, 3, length, requires_grad=True)
    y = FusedScan.apply(x, taps, 0b10, periodic)
    columns = x.transpose(1, 2).reshape(3, length, outer * inner)
    expected = convolve_each_way(columns, taps, periodic=periodic, method="toeplitz")
    expected = expected.unflatten(3, (outer, inner)).transpose(2, 3)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, taps), grad)
    assert_close(found, torch.autograd.grad(expected, (x, taps), grad), tolerance=1e-5)


@pytest.mark.parametrize("lines", [1, 40])
@pytest.mark.parametrize("length", [12, 300])
def test_prepared_kernels_scan_alike(lines, length) -> None:
    taps, directions = torch.randn(2, 3, length), ("forward", "backward")
    x = torch.randn(3, 1, length, lines)
    with use("torch"):
        matrix = prepared_taps(taps, directions, periodic=False, lines=lines)
        assert matrix is not None
        prepared = scan_taps(x, taps, directions, matrix=matrix)
        torch.testing.assert_close(prepared, scan_taps(x, taps, directions), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("as_users_call_it")
def test_taps_cannot_be_carried() -> None:
    with pytest.raises(ValueError, match="`method` must be .* got 'chunked'"):
        scan_taps(torch.randn(1, 1, 4, 1), torch.randn(1, 1, 4), ("forward",), method="chunked")


@pytest.mark.parametrize("positions", [1, 63, 700, 5000])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("residual_weight", "product"), [(0, False), (1, False), (2, False), (0, True), (1, True)])
def test_gates_agree(positions, directions, residual_weight, product) -> None:
    torch.manual_seed(0)
    options = {"residual_weight": residual_weight, "product": product}
    y = torch.randn(6, directions, positions, requires_grad=True)
    weight, bias = torch.randn(directions, 12, 6, requires_grad=True), torch.randn(directions, 12, requires_grad=True)
    residual, grad = torch.randn(6, positions, requires_grad=True), torch.randn(6, positions)
    inputs = (y, weight, bias, *([residual] if residual_weight else []))
    expected = plain_gate(y, weight, bias, residual=residual, **options)
    slopes = torch.autograd.grad(expected, inputs, grad)
    for engine in ("torch", "fused"):
        with use(engine):
            out = gate(y, weight, bias, residual=residual, **options)
            torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
            assert_close(torch.autograd.grad(out, inputs, grad), slopes, tolerance=1e-5)
            with torch.no_grad():
                found = gate(y, weight, bias, residual=residual, **options)
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("engine", ["auto", "torch", "plain"])
def test_a_gate_without_positions_has_gradients_of_zero(engine) -> None:
    given = [torch.randn(shape, requires_grad=True) for shape in ((4, 2, 0), (2, 8, 4), (2, 8), (4, 0))]
    y, weight, bias, residual = given
    with use(engine):
        out = gate(y, weight, bias, residual=residual, residual_weight=1)
        found = torch.autograd.grad(out.sum(), given)
    assert out.shape == (4, 0)
    assert not any(one.any() for one in found)


def test_gradients_of_the_torch_engine_are_right() -> None:
    torch.manual_seed(0)
    y = torch.randn(2, 2, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    residual = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: GateFunction.apply(*inputs, 2), (y, weight, bias, residual))
    shapes = ((2, 5), (3, 2), (3,), (1, 3), (1,))
    head = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(HeadFunction.apply, head)


@pytest.mark.parametrize("positions", [5, 9000])
def test_heads_agree(positions) -> None:
    torch.manual_seed(0)
    head, x, grad = ChannelMLP(6, hidden=20, out_channels=3), torch.randn(6, positions), torch.randn(3, positions)
    with use("plain"):
        expected = answers(head, x, grad)
    for engine in ("torch", "fused"):
        with use(engine):
            assert_close(answers(head, x, grad), expected, tolerance=1e-5)


def test_what_is_not_a_number_stays_visible() -> None:
    y = torch.zeros(4, 1, 70)
    y[2, 0, 65] = torch.nan
    weight, bias = torch.randn(1, 8, 4), torch.randn(1, 8)
    with use("fused"), torch.no_grad():
        out = gate(y, weight, bias)
    assert out[:, 65].isnan().all()
    assert out[:, :65].isfinite().all()


@pytest.mark.parametrize("value", [-30.0, -5.0, -1e-3, 0.0, 1e-3, 5.0, 30.0, 1e4, -1e4])
def test_native_activations_follow_the_exact_ones_far_out(value) -> None:
    y = torch.full((1, 1, 64), value, requires_grad=True)
    weight, bias = torch.tensor([[[1.0], [-0.3]]]), torch.zeros(1, 2)
    expected = plain_gate(y, weight, bias)
    (slope,) = torch.autograd.grad(expected.sum(), y)
    with use("fused"):
        out = gate(y, weight, bias)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(torch.autograd.grad(out.sum(), y)[0], slope, rtol=1e-4, atol=1e-6)


def test_the_engine_is_chosen_by_a_with_block() -> None:
    x = torch.randn(3)
    with use("fused"):
        assert fused(x)
        with use("torch"):
            assert not fused(x)
        assert fused(x)


@pytest.mark.usefixtures("as_users_call_it")
def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="`engine` must be one of 'auto', .*, 'plain', 'triton', got 'quick'"):
        use("quick").__enter__()


def test_a_fused_engine_that_cannot_be_built_says_why(monkeypatch) -> None:
    monkeypatch.setattr("ssno.native.engine.available", lambda: False)
    with pytest.raises(RuntimeError, match="fused engine cannot be loaded"), use("fused"):
        pass


def test_a_fused_engine_refuses_what_it_cannot_take() -> None:
    model = SSNO(SSNOConfig.tiny()).double()
    with use("fused"), pytest.raises(ValueError, match=r"takes float32 tensors on the CPU.*float64.*engine='auto'"):
        model(torch.randn(1, 2, 1, 8, dtype=torch.float64))


def test_lines_too_long_to_differentiate_are_refused_at_once() -> None:
    x = torch.randn(1, 1, 8200, 1, requires_grad=True)
    with pytest.raises(ValueError, match="at most 8192 points, got 8200"):
        scan_taps(x, torch.randn(1, 1, 8200), ("forward",), method="fused")


@pytest.mark.parametrize("engine", ["auto", "torch", "plain"])
def test_steps_of_slow_modes_on_a_circle_have_a_gradient(engine) -> None:
    torch.manual_seed(1)
    config = SSNOConfig.tiny(
        n_dims=2, boundary="periodic", memory=MemoryOptions(1, d_state=8), modes=ModeOptions(kernel_init_norm=0.5)
    )
    model, frames = SSNO(config), torch.randn(3, 4, 1, 5, 9)

    def gradients(of: SSNO, given: torch.Tensor) -> list[torch.Tensor]:
        steps = [
            weight for name, weight in of.named_parameters() if name.endswith("modes.log_step") and "blocks" in name
        ]
        return list(torch.autograd.grad(of(given).square().mean(), steps))

    exact = gradients(copy.deepcopy(model).double(), frames.double())
    with use(engine):
        assert_close(gradients(model, frames), exact, tolerance=5e-3)
