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


@pytest.mark.parametrize(("old", "new"), [(8, 12), (8, 16), (9, 18)])
def test_there_and_back_changes_nothing(old: int, new: int) -> None:
    field = torch.randn(2, old, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(resample(resample(field, (new,)), (old,)), field)


def test_shared_points_keep_their_values() -> None:
    field = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(resample(field, (24,))[::3], field)


def test_axes_are_resampled_one_by_one() -> None:
    field = waves(8)[:, None] * waves(10)[None]
    torch.testing.assert_close(resample(field, (12, 9)), waves(12)[:, None] * waves(9)[None])


def test_no_field_at_all_may_change_its_grid() -> None:
    assert resample(torch.zeros(2, 0, 8), (12,)).shape == (2, 0, 12)
