"""Kernels against direct complex sums."""

import pytest
import torch

from ssno.ssm.discretise import ComplexPair, DiscreteModes, complex_mul, zero_order_hold
from ssno.ssm.kernel import band_kernel, continuous_kernel, kernel, wrapped


def modes_and_weight(channels: int = 3, pairs: int = 5) -> tuple[DiscreteModes, ComplexPair]:
    damping = torch.rand(channels, pairs, dtype=torch.float64) + 0.05
    frequency = 20 * torch.randn(channels, pairs, dtype=torch.float64)
    step = torch.rand(channels, dtype=torch.float64) * 0.2 + 0.01
    weight = ComplexPair(*torch.randn(2, channels, pairs, dtype=torch.float64))
    return zero_order_hold(damping, frequency, step), weight


def direct_sum(modes: DiscreteModes, weight: ComplexPair, positions: torch.Tensor) -> torch.Tensor:
    decay = torch.complex(modes.log_decay, modes.angle)
    mode = torch.exp(decay[..., None] * positions)
    return 2 * torch.einsum("hn,hnl->hl", torch.complex(*weight), mode).real


@pytest.mark.parametrize("length", [1, 2, 3, 16, 17, 100])
def test_factorised_kernel_equals_the_direct_sum(length: int) -> None:
    modes, weight = modes_and_weight()
    positions = torch.arange(length, dtype=torch.float64)
    torch.testing.assert_close(kernel(modes, weight, length=length), direct_sum(modes, weight, positions))


def test_undamped_harmonic_modes_reproduce_the_fourier_kernel() -> None:
    points = 16
    spectrum = torch.randn(1, points // 2, dtype=torch.complex128)
    none = torch.zeros(1, points // 2, dtype=torch.float64)
    angle = 2 * torch.pi * torch.arange(points // 2, dtype=torch.float64)[None] / points
    modes = DiscreteModes(none, angle, ComplexPair(none, none))
    full = torch.zeros(1, points, dtype=torch.complex128)
    full[:, : points // 2] = spectrum
    expected = 2 * torch.fft.ifft(full, norm="forward").real
    torch.testing.assert_close(kernel(modes, ComplexPair(spectrum.real, spectrum.imag), length=points), expected)


@pytest.mark.parametrize("length", [7, 32])
def test_wrapped_kernel_is_the_sum_of_its_images(length: int) -> None:
    modes, weight = modes_and_weight()
    images = kernel(modes, weight, length=length * 20_000).unflatten(1, (-1, length)).sum(dim=1)
    torch.testing.assert_close(kernel(modes, weight, length=length, boundary="periodic"), images, atol=1e-10, rtol=1e-9)


def test_wrapped_kernel_refuses_undamped_modes() -> None:
    modes, weight = modes_and_weight()
    modes.log_decay[0, 0] = 0.0
    with pytest.raises(ValueError, match="needs damping > 0.*periodic-truncated"):
        wrapped(modes, weight, length=8)


def test_kernel_refuses_an_empty_axis() -> None:
    modes, weight = modes_and_weight()
    with pytest.raises(ValueError, match="`length` must be at least 1, got 0"):
        kernel(modes, weight, length=0)


def test_continuous_kernel_agrees_at_shared_points_of_two_grids() -> None:
    damping, frequency = torch.rand(2, 2, 4, dtype=torch.float64)
    weight = ComplexPair(*torch.randn(2, 2, 4, dtype=torch.float64))
    coarse = continuous_kernel(damping, frequency, weight, positions=0.25 * torch.arange(8, dtype=torch.float64))
    fine = continuous_kernel(damping, frequency, weight, positions=0.0625 * torch.arange(32, dtype=torch.float64))
    torch.testing.assert_close(fine[:, ::4], coarse, atol=1e-12, rtol=0)


def test_kernel_gradients_are_right() -> None:
    damping = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    frequency = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    step = (torch.rand(2, dtype=torch.float64) + 0.1).requires_grad_()
    re, im = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def build(damping, frequency, step, re, im):
        modes = zero_order_hold(damping, frequency, step)
        return kernel(modes, ComplexPair(re, im), length=7), kernel(
            modes, ComplexPair(re, im), length=6, boundary="periodic"
        )

    assert torch.autograd.gradcheck(build, (damping, frequency, step, re, im))


def test_float32_phases_stay_accurate_on_long_axes() -> None:
    damping = torch.full((1, 32), 0.01, dtype=torch.float64)
    frequency = torch.pi * torch.arange(32, dtype=torch.float64)[None]
    weight = ComplexPair(*torch.randn(2, 1, 32, dtype=torch.float64))
    step = torch.tensor([0.1], dtype=torch.float64)
    exact = kernel(zero_order_hold(damping, frequency, step), weight, length=4096)
    single = zero_order_hold(damping.float(), frequency.float(), step.float())
    rounded = kernel(single, ComplexPair(weight.re.float(), weight.im.float()), length=4096)
    assert (rounded.double() - exact).norm() / exact.norm() < 1e-3


@pytest.mark.parametrize("length", [8, 9, 32])
def test_exact_taps_do_to_every_wave_what_the_continuous_modes_do(length: int) -> None:
    damping, frequency = torch.rand(2, 3, 5, dtype=torch.float64) + 0.05
    weight = ComplexPair(*torch.randn(2, 3, 5, dtype=torch.float64))
    taps = band_kernel(damping, frequency, weight, length=length)
    rate, complex_weight = torch.complex(damping, frequency), torch.complex(*weight)
    for wave in range((length + 1) // 2):
        turn = 2j * torch.pi * wave / length
        integral = (complex_weight / (rate + turn) + complex_weight.conj() / (rate.conj() + turn)).sum(1)
        shift = torch.exp(-turn * torch.arange(length, dtype=torch.float64))
        torch.testing.assert_close((taps * shift).sum(1), integral)


def test_exact_taps_are_the_limit_of_fine_zero_order_hold() -> None:
    damping, frequency = torch.rand(2, 3, 5, dtype=torch.float64) + 0.05
    weight = ComplexPair(*torch.randn(2, 3, 5, dtype=torch.float64))
    taps, fine = band_kernel(damping, frequency, weight, length=16), 256
    modes = zero_order_hold(damping, frequency, torch.full((3,), 1 / fine, dtype=torch.float64))
    gain = ComplexPair(*(complex_mul(weight, modes.gain)))
    spectrum = torch.fft.rfft(kernel(modes, gain, length=16 * fine, boundary="periodic"))[:, :8]
    torch.testing.assert_close(torch.fft.rfft(taps)[:, :8], spectrum, rtol=2e-2, atol=2e-2)
