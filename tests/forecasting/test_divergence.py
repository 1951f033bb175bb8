"""The first frame at which a forecast diverges."""

import math

import pytest
import torch

from ssno.forecasting.divergence import NEVER, divergence_step, largest_values


def test_growth_by_two_per_frame_passes_ten_times_the_usual_in_frame_three() -> None:
    prediction = (2.0 ** torch.arange(1, 7))[None, :, None, None].expand(1, 6, 1, 4)  # 2 4 8 16 ...
    assert divergence_step(prediction, torch.ones(1, 1)).tolist() == [3]
    assert divergence_step(-prediction, 7 * torch.ones(1, 1)).tolist() == [NEVER]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_counts_in_any_field_of_its_own_trajectory(value) -> None:
    prediction = torch.zeros(3, 5, 2, 3, 3)
    prediction[1, 4, 1, 0, 2] = value
    assert divergence_step(prediction, torch.ones(3, 2)).tolist() == [NEVER, 4, NEVER]
    assert divergence_step(prediction, torch.zeros(3, 2)).tolist() == [NEVER, 4, NEVER]


def test_fields_are_measured_by_their_own_size() -> None:
    usual = largest_values(torch.tensor([[[[1.0, -3.0]], [[2.0, 2.0]]]]).transpose(1, 2))
    assert usual.tolist() == [[3.0, 2.0]]
    prediction = torch.tensor([25.0, 25.0])[None, None, :, None]
    assert divergence_step(prediction, usual).tolist() == [0]  # 25 > 20 though 25 < 30
    assert divergence_step(prediction, torch.tensor([[3.0, 0.0]])).tolist() == [NEVER]  # a field of zeros has no scale
