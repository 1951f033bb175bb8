"""The selective block: the linear one when switched off, the written-out recurrence when on."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from ssno.layers.axial import BidirectionalScan
from ssno.layers.memory import S4DBlock
from ssno.layers.modes import ModeOptions
from ssno.layers.selective import SelectiveBlock
from ssno.native.engine import use
from ssno.ssm.convolution import Direction
from ssno.ssm.selective import inverse_softplus, selective_response


def block(direction: Direction = "forward", boundary: str = "zero", channels: int = 5) -> SelectiveBlock:
    options = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)
    return SelectiveBlock(channels, d_state=6, direction=direction, boundary=boundary, options=options).double()  # type: ignore[arg-type]


def switched_off(selective: SelectiveBlock) -> S4DBlock:
    """The linear block with the same modes, skip and mixing; the selective one gets W = 0."""
    for layer in (selective.select, selective.spread):
        torch.nn.init.zeros_(layer.weight)
    linear = S4DBlock(
        selective.skip.numel(),
        d_state=6,
        direction=selective.direction,
        boundary=selective.boundary,
        options=ModeOptions(resolution_transfer="resample"),
    )
    own = {
        name: value for name, value in selective.state_dict().items() if name.split(".")[0] not in ("select", "spread")
    }
    linear.double().load_state_dict(own)
    return linear.double()


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_without_selection_it_is_the_linear_block(direction: Direction, boundary: str) -> None:
    selective = block(direction, boundary)
    x = torch.randn(3, 5, 17, dtype=torch.float64)
    for spacing in (1.0, 0.5):
        expected = switched_off(selective)(x, spacing=spacing)
        torch.testing.assert_close(selective(x, spacing=spacing), expected, rtol=0, atol=1e-12)


def naive(selective: SelectiveBlock, x: Tensor) -> Tensor:
    """The formulas of the module's docstring, point by point, for one line (h, l)."""
    modes, rank = selective.modes, selective.rank
    rate = -torch.exp(modes.log_damping) - 1j * modes.frequency
    enter, leave = torch.view_as_complex(modes.input_weight), torch.view_as_complex(modes.output_weight)
    state, answers = torch.zeros_like(enter), []
    for value in x.T:
        chosen = selective.select.weight @ (value / torch.sqrt(1 + value.square().mean()))
        step = torch.exp(modes.log_step)
        step = softplus(torch.log(torch.expm1(step)) + selective.spread.weight @ chosen[-rank:])
        shift = torch.complex(*chosen[:-rank].view(2, -1, 2).unbind(-1))
        decay = torch.exp(step[:, None] * rate)
        state = decay * state + (decay - 1) / rate * (enter + shift[0]) * value[:, None]
        answers.append(2 * ((leave + shift[1]) * state).sum(1).real + selective.skip * value)
    return torch.stack(answers, dim=1)


def test_it_equals_the_recurrence_written_out() -> None:
    forward, backward = block(), block("backward")
    x = torch.randn(2, 5, 11, dtype=torch.float64)
    for one in range(2):
        torch.testing.assert_close(
            forward.carried(x[one][..., None])[..., 0], naive(forward, x[one]), atol=1e-12, rtol=0
        )
        mirrored = naive(backward, x[one].flip(1)).flip(1)
        torch.testing.assert_close(backward.carried(x[one][..., None])[..., 0], mirrored, atol=1e-12, rtol=0)


def test_later_points_do_not_move_earlier_outputs() -> None:
    selective, x = block(), torch.randn(1, 5, 12, dtype=torch.float64)
    changed = x.clone()
    changed[..., 7:] += 1
    assert torch.equal(selective(x)[..., :7], selective(changed)[..., :7])
    assert not torch.equal(selective(x)[..., 7:], selective(changed)[..., 7:])


def test_a_wrapped_axis_has_no_beginning() -> None:
    selective, x = block(boundary="periodic"), torch.randn(2, 5, 12, dtype=torch.float64)
    torch.testing.assert_close(selective(x.roll(5, -1)), selective(x).roll(5, -1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_gradients_of_the_whole_block(direction: Direction, boundary: str) -> None:
    selective = block(direction, channels=2, boundary=boundary)
    names = [name for name, _ in selective.named_parameters()]
    x = torch.randn(1, 2, 4, dtype=torch.float64, requires_grad=True)

    def call(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(selective, dict(zip(names, values, strict=True)), (x,))

    values = [p.detach().clone().requires_grad_() for p in selective.parameters()]
    assert torch.autograd.gradcheck(call, (x, *values))


def test_strong_damping_stays_finite_in_single_precision() -> None:
    damping = torch.full((2, 3), 30.0, requires_grad=True)
    weight = torch.ones(200, 1, 1, 3, dtype=torch.complex64)
    x = torch.randn(200, 1, 2)
    y = selective_response(
        x,
        torch.ones(200, 1, 2),
        damping=damping,
        frequency=torch.randn(2, 3),
        input_weight=weight,
        output_weight=weight,
    )
    y.square().sum().backward()
    assert y.isfinite().all()
    assert damping.grad is not None
    assert damping.grad.isfinite().all()


def test_a_large_input_gives_an_answer_of_its_size() -> None:
    selective, x = block(), torch.randn(2, 5, 64, dtype=torch.float64)
    small, large = (selective(scale * x).abs().max() / scale for scale in (1e3, 1e6))
    assert large < 1.1 * small  # a cubic would grow 1e6-fold


def test_a_step_of_zero_leaves_the_state_as_it_is() -> None:
    weight = torch.ones(4, 1, 1, 3, dtype=torch.complex128)
    step = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)[:, None, None].expand(4, 1, 2)
    rates = {
        "damping": torch.rand(2, 3, dtype=torch.float64) + 0.1,
        "frequency": torch.randn(2, 3, dtype=torch.float64),
    }
    y = selective_response(
        torch.randn(4, 1, 2, dtype=torch.float64), step, input_weight=weight, output_weight=weight, **rates
    )
    assert torch.equal(y[1:], y[:1].expand(3, 1, 2))


def test_softplus_is_inverted_over_many_magnitudes() -> None:
    value = torch.logspace(-8, 2, 40, dtype=torch.float64)
    torch.testing.assert_close(softplus(inverse_softplus(value)), value, rtol=1e-9, atol=0)


def test_what_selectivity_adds_is_counted() -> None:
    def count(module: torch.nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    assert count(SelectiveBlock(32, d_state=64)) == 12_544
    assert count(S4DBlock(32, d_state=64)) == 8_320


@pytest.mark.usefixtures("as_users_call_it")
def test_what_a_selective_scan_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="A selective scan needs damping > 0, but damping='absent'"):
        SelectiveBlock(4, options=ModeOptions(damping="absent"))
    with pytest.raises(ValueError, match="A selective scan holds its input"):
        SelectiveBlock(4, options=ModeOptions(discretisation="bilinear"))
    with pytest.raises(ValueError, match="`boundary` must be one of 'zero', 'periodic', got 'periodic-truncated'"):
        SelectiveBlock(4, boundary="periodic-truncated")
    with pytest.raises(ValueError, match="A selective block has no kernel"):
        SelectiveBlock(4).kernel(8)


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_written_out_it_is_the_same_and_can_be_transformed(boundary: str) -> None:
    torch.manual_seed(0)
    scan = BidirectionalScan(3, d_state=2, boundary=boundary, options=ModeOptions(selective=True)).double()
    x = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    with use("plain"):
        written = scan(x)
    torch.testing.assert_close(written, scan(x))
    torch.testing.assert_close(torch.func.vmap(lambda one: scan(one[None])[0])(x), scan(x))
    assert torch.autograd.gradgradcheck(scan, (x,), atol=1e-6)
