"""Discretised modes against complex arithmetic, and their limits."""

import math

import pytest
import torch

from ssno.ssm.discretise import ComplexPair, bilinear, divide, exprel, impulse, one_minus_polar, polar, zero_order_hold

DAMPING = torch.tensor([[0.5, 0.0, 1e-9, 3.0]], dtype=torch.float64)
FREQUENCY = torch.tensor([[2.0, 5.0, 1e-9, -70.0]], dtype=torch.float64)
STEP = torch.tensor([0.1], dtype=torch.float64)


def as_complex(z: ComplexPair) -> torch.Tensor:
    return torch.complex(z.re, z.im)


def test_zero_order_hold_matches_its_formula() -> None:
    modes = zero_order_hold(DAMPING, FREQUENCY, STEP)
    rate = torch.complex(-DAMPING, -FREQUENCY)
    torch.testing.assert_close(
        as_complex(polar(modes.log_decay, modes.angle)), torch.exp(rate * 0.1), atol=1e-14, rtol=0
    )
    expected = torch.where(rate.abs() < 1e-6, 0.1 + 0j, (torch.exp(rate * 0.1) - 1) / rate)
    torch.testing.assert_close(as_complex(modes.gain), expected, atol=1e-10, rtol=0)


def test_bilinear_matches_its_formula() -> None:
    modes = bilinear(DAMPING, FREQUENCY, STEP)
    half = 0.05 * torch.complex(-DAMPING, -FREQUENCY)
    torch.testing.assert_close(as_complex(polar(modes.log_decay, modes.angle)), (1 + half) / (1 - half))
    torch.testing.assert_close(as_complex(modes.gain), 0.1 / (1 - half))


def test_undamped_modes_keep_their_modulus_exactly() -> None:
    none = torch.zeros_like(DAMPING)
    assert zero_order_hold(none, FREQUENCY, STEP).log_decay.eq(0).all()
    assert bilinear(none, FREQUENCY, STEP).log_decay.eq(0).all()


def test_exprel_is_one_with_slope_one_half_at_zero() -> None:
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    y = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    value = exprel(ComplexPair(x, y))
    along_x, along_y = torch.autograd.grad(value.re + value.im, (x, y))
    assert value.re.item() == 1
    assert value.im.item() == 0
    assert along_x.item() == pytest.approx(0.5)
    assert along_y.item() == pytest.approx(0.5)


def test_exprel_series_and_quotient_meet_without_a_step() -> None:
    radius = torch.tensor([0.1 - 1e-12, 0.1 + 1e-12], dtype=torch.float64)
    value = exprel(ComplexPair(radius * math.cos(2.0), radius * math.sin(2.0)))
    assert (value.re[0] - value.re[1]).abs() < 1e-12
    assert (value.im[0] - value.im[1]).abs() < 1e-12


@pytest.mark.parametrize("discretise", [zero_order_hold, bilinear])
def test_gradients_are_right_at_the_undamped_zero_frequency_mode(discretise) -> None:
    damping = torch.tensor([[0.0, 0.3, 1e-3]], dtype=torch.float64, requires_grad=True)
    frequency = torch.tensor([[0.0, 2.0, 1e-3]], dtype=torch.float64, requires_grad=True)
    step = torch.tensor([0.2], dtype=torch.float64, requires_grad=True)

    def parts(damping, frequency, step):
        modes = discretise(damping, frequency, step)
        decay = polar(modes.log_decay, modes.angle)  # the angle itself jumps by 2 pi at zero, the decay does not
        return decay.re, decay.im, modes.gain.re, modes.gain.im

    assert torch.autograd.gradcheck(parts, (damping, frequency, step))


def test_one_minus_polar_does_not_cancel() -> None:
    tiny = torch.tensor([1e-12], dtype=torch.float64)
    near_one = one_minus_polar(-tiny, tiny)
    torch.testing.assert_close(near_one.re, tiny, rtol=1e-9, atol=0)
    torch.testing.assert_close(near_one.im, -tiny, rtol=1e-9, atol=0)


def test_division_is_complex_division() -> None:
    a, b = torch.randn(2, 5, dtype=torch.complex128)
    quotient = divide(ComplexPair(a.real, a.imag), ComplexPair(b.real, b.imag))
    torch.testing.assert_close(as_complex(quotient), a / b)


def test_angles_lie_within_half_a_turn_and_small_ones_keep_all_digits() -> None:
    frequency = torch.tensor([[1e-3, 0.7, 40.0, -90.0]])
    modes = zero_order_hold(torch.ones_like(frequency), frequency, torch.tensor([0.1]))
    assert modes.angle.abs().max() <= math.pi
    assert modes.angle[0, :2].equal(-frequency[0, :2] * torch.tensor(0.1))
    torch.testing.assert_close(modes.angle.sin(), (-frequency * 0.1).sin(), atol=1e-5, rtol=0)


def test_impulses_enter_with_the_step_as_their_weight() -> None:
    modes, exact = impulse(DAMPING, FREQUENCY, STEP), zero_order_hold(DAMPING, FREQUENCY, STEP)
    torch.testing.assert_close(modes.log_decay, exact.log_decay)
    torch.testing.assert_close(modes.angle, exact.angle)
    torch.testing.assert_close(as_complex(modes.gain), torch.full((1, 4), 0.1 + 0j, dtype=torch.complex128))
