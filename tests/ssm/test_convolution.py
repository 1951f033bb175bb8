"""All ways to apply a kernel give the same answer, and the right gradients."""

import pytest
import torch

from ssno.ssm.convolution import choose_method, convolve, convolve_each_way, toeplitz
from ssno.ssm.discretise import ComplexPair, DiscreteModes, complex_mul, zero_order_hold
from ssno.ssm.kernel import kernel
from ssno.ssm.recurrence import linear_recurrence

METHODS = ["fft", "toeplitz"]


def system(channels: int = 3, pairs: int = 4, *, damping: float = 0.3) -> tuple[DiscreteModes, ComplexPair]:
    modes = zero_order_hold(
        damping * (1 + torch.rand(channels, pairs, dtype=torch.float64)),
        5 * torch.randn(channels, pairs, dtype=torch.float64),
        0.1 + 0.1 * torch.rand(channels, dtype=torch.float64),
    )
    return modes, ComplexPair(*torch.randn(2, channels, pairs, dtype=torch.float64))


@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("length", [1, 2, 15, 16])
@pytest.mark.parametrize("method", METHODS)
def test_convolution_equals_recurrence(boundary, direction, length, method) -> None:
    modes, weight = system()
    x = torch.randn(3, length, 5, dtype=torch.float64)
    impulse_response = kernel(modes, complex_mul(weight, modes.gain), length=length, boundary=boundary)
    fast = convolve(x, impulse_response, direction=direction, periodic=boundary != "zero", method=method)
    slow = linear_recurrence(modes, weight, x, direction=direction, boundary=boundary)
    torch.testing.assert_close(fast, slow, atol=1e-10, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_one_period_scan_of_undamped_modes_equals_recurrence(method) -> None:
    modes, weight = system(damping=0.0)
    x = torch.randn(3, 9, 2, dtype=torch.float64)
    impulse_response = kernel(modes, complex_mul(weight, modes.gain), length=9)
    fast = convolve(x, impulse_response, periodic=True, method=method)
    torch.testing.assert_close(
        fast, linear_recurrence(modes, weight, x, boundary="periodic-truncated"), atol=1e-10, rtol=0
    )


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("length", [8, 9])
@pytest.mark.parametrize("method", METHODS)
def test_each_way_is_every_direction_by_itself(periodic, length, method) -> None:
    x = torch.randn(2, length, 3, dtype=torch.float64)
    ahead, back = torch.randn(2, 2, length, dtype=torch.float64)
    both = convolve_each_way(x, torch.stack([ahead, back]), periodic=periodic, method=method)
    forward = convolve(x, ahead, direction="forward", periodic=periodic, method="toeplitz")
    backward = convolve(x, back, direction="backward", periodic=periodic, method="toeplitz")
    torch.testing.assert_close(both, torch.stack([forward, backward], dim=1), atol=1e-10, rtol=0)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_right(periodic, method) -> None:
    x = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    ahead = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    back = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)

    def apply(x, ahead, back):
        one_way = convolve(x, back, direction="backward", periodic=periodic, method=method)
        return one_way, convolve_each_way(x, torch.stack([ahead, back]), periodic=periodic, method=method)

    assert torch.autograd.gradcheck(apply, (x, ahead, back))


def test_recurrence_gradients_are_right() -> None:
    modes, weight = system(channels=1, pairs=2)
    inputs = [*modes[:2], *modes.gain, *weight, torch.randn(1, 4, 2, dtype=torch.float64)]
    inputs = [value.clone().requires_grad_() for value in inputs]

    def apply(log_decay, angle, gain_re, gain_im, re, im, x):
        return linear_recurrence(
            DiscreteModes(log_decay, angle, ComplexPair(gain_re, gain_im)), ComplexPair(re, im), x, boundary="periodic"
        )

    assert torch.autograd.gradcheck(apply, inputs)


def test_toeplitz_matrices_by_hand() -> None:
    kernel = torch.tensor([[1.0, 2.0, 3.0]])
    assert toeplitz(kernel)[0].tolist() == [[1, 0, 0], [2, 1, 0], [3, 2, 1]]
    assert toeplitz(kernel, direction="backward")[0].tolist() == [[1, 2, 3], [0, 1, 2], [0, 0, 1]]
    assert toeplitz(kernel, periodic=True)[0].tolist() == [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    assert toeplitz(kernel, direction="backward", periodic=True)[0].tolist() == [[1, 2, 3], [3, 1, 2], [2, 3, 1]]


def test_short_axes_with_many_lines_take_the_matrix_and_others_the_fft() -> None:
    cpu = torch.device("cpu")
    assert choose_method(64, 1000, cpu) == "toeplitz"
    assert choose_method(512, 1000, cpu) == "fft"
    assert choose_method(64, 1, cpu) == "fft"


@pytest.mark.parametrize("lines", [1, 40])
def test_the_automatic_choice_gives_the_same_answer(lines) -> None:
    x, kernel = torch.randn(2, 10, lines, dtype=torch.float64), torch.randn(2, 10, dtype=torch.float64)
    torch.testing.assert_close(convolve(x, kernel), convolve(x, kernel, method="fft"), atol=1e-10, rtol=0)
    kernels = torch.stack([kernel, kernel.flip(1)])
    both = convolve_each_way(x, kernels)
    expected = convolve_each_way(x, kernels, method="toeplitz")
    torch.testing.assert_close(both, expected, atol=1e-10, rtol=0)


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_options_are_refused() -> None:
    x, kernel = torch.randn(1, 4, 1), torch.randn(1, 4)
    with pytest.raises(ValueError, match="`method` must be 'auto', 'fft' or 'toeplitz', got 'direct'"):
        convolve(x, kernel, method="direct")
    with pytest.raises(ValueError, match="`method` must be .* got 'direct'"):
        convolve_each_way(x, kernel[None], directions=("forward",), method="direct")
    with pytest.raises(ValueError, match="`direction` must be one of 'forward', 'backward', got 'sideways'"):
        toeplitz(kernel, direction="sideways")
