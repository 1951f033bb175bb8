"""Periodic fields on other grids."""

import pytest
import torch

from ssno.transforms.periodic import resample


def waves(points: int) -> torch.Tensor:
    x = 2 * torch.pi * torch.arange(points, dtype=torch.float64) / points
    return 1 + torch.cos(x + 0.3) - 0.5 * torch.sin(3 * x)


@pytest.mark.parametrize(("old", "new"), [(8, 12), (9, 14), (12, 8), (15, 9), (8, 8), (7, 64)])
def test_resolved_waves_are_carried_over_exactly(old: int, new: int) -> None:
    torch.testing.assert_close(resample(waves(old), (new,)), waves(new))


@pytest.mark.parametrize(("old", "new"), [(8, 9), (8, 12), (8, 16), (9, 10), (9, 18)])
def test_there_and_back_changes_nothing(old: int, new: int) -> None:
    field = torch.randn(2, old, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(resample(resample(field, (new,)), (old,)), field)


def test_shared_points_keep_their_values() -> None:
    field = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(resample(field, (24,))[::3], field)


def test_axes_are_resampled_one_by_one() -> None:
    field = waves(8)[:, None] * waves(10)[None]
    torch.testing.assert_close(resample(field, (12, 9)), waves(12)[:, None] * waves(9)[None])


@pytest.mark.parametrize("middle", [9, 13, 14, 30])
@pytest.mark.parametrize("coarse", [8, 9])
def test_two_steps_to_coarser_grids_are_the_same_as_one(middle: int, coarse: int) -> None:
    field = torch.randn(31, 31, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    halfway = resample(field, (middle, middle))
    torch.testing.assert_close(resample(halfway, (coarse, coarse)), resample(field, (coarse, coarse)))


@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_an_even_grid_keeps_the_cosine_of_its_highest_wave_as_its_points_see_it(shift: float) -> None:
    x, coarse = (torch.arange(n, dtype=torch.float64) / n for n in (40, 16))
    field = torch.cos(2 * torch.pi * 8 * x + 0.4)
    expected = torch.cos(2 * torch.pi * 8 * (coarse + shift) + 0.4)
    torch.testing.assert_close(resample(field, (16,), shift=(shift,)), expected)
    torch.testing.assert_close(resample(field, (15,), shift=(shift,)), torch.zeros(15, dtype=torch.float64))


@pytest.mark.parametrize(("old", "new"), [(8, 8), (9, 9), (8, 12), (8, 15), (15, 8)])
def test_the_new_points_may_start_elsewhere(old: int, new: int) -> None:
    found = resample(waves(old), (new,), shift=(0.25 / new,))
    torch.testing.assert_close(found, waves(4 * new)[1::4])


def test_to_a_finer_shifted_grid_and_back_changes_nothing() -> None:
    lone = torch.tensor([1.0, -1.0] * 4, dtype=torch.float64)
    there = resample(lone, (16,), shift=(0.03,))
    torch.testing.assert_close(resample(there, (8,), shift=(-0.03,)), lone)


def test_no_field_at_all_may_change_its_grid() -> None:
    assert resample(torch.zeros(2, 0, 8), (12,)).shape == (2, 0, 12)
