"""The linear multi-channel layer against its recurrence and its kernel."""

import pytest
import torch

from ssno.layers.linear_ssm import LinearSSM, LinearSweep


def recurrence(layer: LinearSSM, x: torch.Tensor, spacing: float) -> torch.Tensor:
    """s <- exp(rate spacing) s + spacing B x, y = 2 Re C s, point by point; (b, i, l) to (b, o, l)."""
    b, c = torch.view_as_complex(layer.input_weight), torch.view_as_complex(layer.output_weight)
    decay = torch.exp(spacing * torch.complex(-layer.log_damping.exp(), -layer.frequency))
    state, outputs = torch.zeros(x.shape[0], len(b), dtype=b.dtype), []
    for point in x.unbind(-1):
        state = decay * state + spacing * point.to(b.dtype) @ b.T
        outputs.append(2 * (state @ c.T).real)
    return torch.stack(outputs, dim=-1)


def test_zero_boundary_is_the_recurrence() -> None:
    layer = LinearSSM(3, 2, modes=4, boundary="zero").double()
    x = torch.randn(5, 3, 11, dtype=torch.float64)
    torch.testing.assert_close(layer(x), recurrence(layer, x, 1 / 11), atol=1e-12, rtol=0)
    torch.testing.assert_close(layer(x, spacing=0.3), recurrence(layer, x, 0.3), atol=1e-12, rtol=0)


def test_backward_is_forward_on_the_reflected_axis() -> None:
    layer = LinearSSM(3, 2, modes=4, boundary="zero", direction="backward").double()
    x = torch.randn(5, 3, 11, dtype=torch.float64)
    torch.testing.assert_close(layer(x), recurrence(layer, x.flip(-1), 1 / 11).flip(-1), atol=1e-12, rtol=0)


@pytest.mark.parametrize("boundary", ["periodic", "periodic-truncated"])
def test_periodic_layers_are_circular_convolutions_with_their_kernel(boundary) -> None:
    layer = LinearSSM(3, 2, modes=4, boundary=boundary).double()
    x = torch.randn(5, 3, 10, dtype=torch.float64)
    spectrum = torch.einsum("oik,bik->bok", torch.fft.fft(layer.kernel(10)), torch.fft.fft(x).resolve_conj())
    torch.testing.assert_close(layer(x), torch.fft.ifft(spectrum).real, atol=1e-12, rtol=0)


def test_wrapped_is_the_recurrence_after_many_turns() -> None:
    layer = LinearSSM(2, 2, modes=3, boundary="periodic").double()
    layer.log_damping.data += 1.5
    x = torch.randn(1, 2, 10, dtype=torch.float64)
    turns = recurrence(layer, x.repeat(1, 1, 20), 1 / 10)
    torch.testing.assert_close(layer(x), turns[..., -10:], atol=1e-10, rtol=0)


def test_a_kernel_sampled_on_a_finer_grid_agrees_at_shared_points() -> None:
    layer = LinearSSM(2, 3, modes=4).double()
    coarse, fine = layer.kernel(8) * 8, layer.kernel(24) * 24  # per unit length
    torch.testing.assert_close(fine[..., ::3], coarse, atol=1e-12, rtol=0)


def test_gradients_are_right() -> None:
    layer = LinearSSM(2, 2, modes=3, boundary="periodic").double()
    x = torch.randn(1, 2, 6, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def apply(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(apply, (x, *values))


@pytest.mark.parametrize(
    ("damping", "frequency", "learned"),
    [
        ("learnable", "learnable", ["log_damping", "frequency"]),
        ("absent", "learnable", ["frequency"]),
        ("fixed", "fixed", []),
    ],
)
def test_what_is_learned_of_the_dynamics(damping, frequency, learned) -> None:
    layer = LinearSSM(2, 2, modes=3, damping=damping, frequency=frequency)
    named = dict(layer.named_parameters())
    assert [id(p) for p in layer.state_space_parameters()] == [id(named[name]) for name in learned]
    assert set(layer.state_dict()) == {"log_damping", "frequency", "input_weight", "output_weight"}


def test_a_sweep_adds_the_axes() -> None:
    layers = [LinearSSM(3, 3, modes=2).double() for _ in range(2)]
    field = torch.randn(3, 4, 5, 2, dtype=torch.float64)
    along_x = layers[0](field.permute(3, 2, 0, 1).flatten(0, 1)).unflatten(0, (2, 5)).permute(2, 3, 1, 0)
    along_y = layers[1](field.permute(3, 1, 0, 2).flatten(0, 1)).unflatten(0, (2, 4)).permute(2, 1, 3, 0)
    torch.testing.assert_close(LinearSweep(layers)(field), along_x + along_y)


@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="`modes` must be at least 1, got 0"):
        LinearSSM(2, 2, modes=0)
    for name in ("damping", "frequency", "direction", "boundary"):
        with pytest.raises(ValueError, match=rf"`{name}` must be one of .*, got 'nonsense'"):
            LinearSSM(2, 2, modes=2, **{name: "nonsense"})
    with pytest.raises(ValueError, match="`boundary` must be one of .*, got 'neumann'"):
        LinearSSM(2, 2, modes=2, boundary="neumann")
