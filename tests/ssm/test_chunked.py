"""The chunked scan equals the recurrence and the FFT, in one go or piece by piece, at any length."""

import pytest
import torch

from ssno.ssm.convolution import convolve
from ssno.ssm.discretise import ComplexPair, DiscreteModes, complex_mul, zero_order_hold
from ssno.ssm.kernel import kernel
from ssno.ssm.recurrence import chunk_maps, linear_recurrence, scan_chunk, scan_chunked, zero_state
from ssno.ssm.scan import CHUNKED_FROM, choose_scan, scan


def system(channels: int = 2, pairs: int = 3, damped: bool = True) -> tuple[DiscreteModes, ComplexPair]:
    damping = torch.rand(channels, pairs, dtype=torch.float64) + 0.05 if damped else torch.zeros(channels, pairs)
    frequency = 20 * torch.randn(channels, pairs, dtype=torch.float64)
    step = torch.rand(channels, dtype=torch.float64) * 0.2 + 0.01
    weight = ComplexPair(*torch.randn(2, channels, pairs, dtype=torch.float64))
    return zero_order_hold(damping.double(), frequency, step), weight


@pytest.mark.parametrize("chunk", [1, 4, 7, 23, 100])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
def test_chunks_of_any_size_equal_the_recurrence(boundary, direction, chunk) -> None:
    modes, weight = system()
    x = torch.randn(2, 23, 3, dtype=torch.float64)
    chunked = scan_chunked(modes, weight, x, direction=direction, boundary=boundary, chunk=chunk)
    torch.testing.assert_close(
        chunked, linear_recurrence(modes, weight, x, direction=direction, boundary=boundary), atol=1e-10, rtol=0
    )


def test_undamped_modes_go_round_one_period() -> None:
    modes, weight = system(damped=False)
    x = torch.randn(2, 23, 1, dtype=torch.float64)
    chunked = scan_chunked(modes, weight, x, boundary="periodic-truncated", chunk=5)
    torch.testing.assert_close(
        chunked, linear_recurrence(modes, weight, x, boundary="periodic-truncated"), atol=1e-10, rtol=0
    )


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_a_very_long_axis_equals_the_fft(boundary) -> None:
    modes, weight = system(channels=1, pairs=2)
    length = 65_536
    x = torch.randn(1, length, 1, dtype=torch.float64)
    taps = kernel(modes, complex_mul(weight, modes.gain), length=length, boundary=boundary)
    expected = convolve(x, taps, periodic=boundary != "zero", method="fft")
    torch.testing.assert_close(scan_chunked(modes, weight, x, boundary=boundary), expected, atol=1e-10, rtol=0)


def test_pieces_with_a_carried_state_equal_the_whole() -> None:
    modes, weight = system()
    x = torch.randn(2, 24, 3, dtype=torch.float64)
    maps = chunk_maps(modes, weight, chunk=6)
    state, pieces = zero_state(modes, 3), []
    for piece in x.split(6, dim=1):
        y, state = scan_chunk(maps, piece, state)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, dim=1), linear_recurrence(modes, weight, x), atol=1e-10, rtol=0)


@pytest.mark.parametrize("boundary", ["zero", "periodic", "periodic-truncated"])
def test_gradients_are_right(boundary) -> None:
    modes, weight = system(channels=1, pairs=2)
    inputs = [*modes[:2], *modes.gain, *weight, torch.randn(1, 7, 2, dtype=torch.float64)]
    inputs = [value.clone().requires_grad_() for value in inputs]

    def apply(log_decay, angle, gain_re, gain_im, re, im, x):
        modes = DiscreteModes(log_decay, angle, ComplexPair(gain_re, gain_im))
        return scan_chunked(modes, ComplexPair(re, im), x, boundary=boundary, chunk=3)

    assert torch.autograd.gradcheck(apply, inputs)


def test_memory_grows_no_faster_than_the_axis() -> None:
    modes, weight = system(channels=1, pairs=2)

    def saved(length: int) -> int:
        """Numbers kept for the backward pass."""
        kept = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal kept
            kept += tensor.numel()
            return tensor

        x = torch.randn(1, length, 1, dtype=torch.float64, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            scan_chunked(modes, weight, x, chunk=32)
        return kept

    assert saved(4096) - saved(2048) <= 1.01 * 2 * (saved(2048) - saved(1024))


def test_every_method_of_scan_agrees() -> None:
    modes, weight = system()
    x, skip = torch.randn(2, 20, 3, dtype=torch.float64), torch.randn(2, dtype=torch.float64)
    expected = linear_recurrence(modes, weight, x, direction="backward") + skip[:, None, None] * x
    for method in ("auto", "fft", "toeplitz", "chunked"):
        y = scan(modes, weight, x, skip=skip, direction="backward", method=method)
        torch.testing.assert_close(y, expected, atol=1e-10, rtol=0)


def test_the_automatic_choice_follows_length_and_boundary() -> None:
    cpu = torch.device("cpu")
    assert choose_scan(64, 1000, cpu) == "toeplitz"
    assert choose_scan(CHUNKED_FROM - 1, 1, cpu) == "fft"
    assert choose_scan(CHUNKED_FROM, 1, cpu) == "chunked"
    assert choose_scan(CHUNKED_FROM, 1, cpu, boundary="periodic") == "fft"


@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_arguments_are_refused() -> None:
    modes, weight = system()
    x = torch.randn(2, 8, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match="`chunk` must be at least 1, got 0"):
        scan_chunked(modes, weight, x, chunk=0)
    with pytest.raises(ValueError, match="`direction` must be 'forward' or 'backward', got 'sideways'"):
        scan_chunked(modes, weight, x, direction="sideways")
    with pytest.raises(ValueError, match=r"`x` has 8 points, but the maps are for chunks of 5. .*chunk=8"):
        scan_chunk(chunk_maps(modes, weight, chunk=5), x, zero_state(modes, 1))
    with pytest.raises(ValueError, match="`method` must be 'auto', 'fft', 'toeplitz' or 'chunked', got 'direct'"):
        scan(modes, weight, x, skip=torch.zeros(2), method="direct")
