"""Kernels on other grids."""

import pytest
import torch

from ssno.ssm.resolution import continued, learned_grid, sublattices


def random_taps(points: int) -> torch.Tensor:
    return torch.randn(3, points, dtype=torch.float64, generator=torch.Generator().manual_seed(points))


def test_an_integer_refinement_puts_zeros_between_the_taps() -> None:
    taps = random_taps(6)
    finer = continued(taps, 18)
    torch.testing.assert_close(finer[:, ::3], taps)
    assert finer[:, 1::3].abs().max() < 1e-14
    assert finer[:, 2::3].abs().max() < 1e-14


@pytest.mark.parametrize("learned", [8, 9])
@pytest.mark.parametrize("points", [5, 6, 8, 12, 13, 25])
def test_waves_that_both_grids_resolve_meet_the_same_spectrum(learned: int, points: int) -> None:
    taps = random_taps(learned)
    shared = (min(learned, points) + 1) // 2
    there = torch.fft.rfft(continued(taps, points))[:, :shared]
    torch.testing.assert_close(there, torch.fft.rfft(taps)[:, :shared])


def test_the_learned_grid_keeps_its_taps() -> None:
    taps = random_taps(10)
    torch.testing.assert_close(continued(taps, 10), taps)


@pytest.mark.parametrize(
    ("length", "spacing", "copies"), [(64, 1.0, 1), (128, 0.5, 2), (127, 0.5, None), (100, 0.64, None), (32, 2.0, None)]
)
def test_sublattices_need_an_integer_refinement(length: int, spacing: float, copies: int | None) -> None:
    assert sublattices(length, spacing) == copies


def test_the_learned_grid_of_an_axis_fills_it() -> None:
    assert learned_grid(100, 0.64) == (64, 1.0)
    points, spacing = learned_grid(101, 0.64)
    assert points * spacing == pytest.approx(101 * 0.64)
    assert points == 65
