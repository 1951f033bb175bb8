"""Coverage and spread of ensembles whose distribution is known."""

import math

import pytest
import torch
from torch import Tensor

from ssno.evaluation.record import NOMINAL, Calibration, batch_sums, finish


def calibrate(members: Tensor, truth: Tensor) -> Calibration:
    return finish([batch_sums(members, truth)])


@pytest.mark.parametrize("members", [2, 5])
def test_gaussian_draws_are_covered_as_often_as_the_intervals_say(members) -> None:
    draws = torch.randn(members + 1, 50, 4, 1, 200)
    found = calibrate(draws[1:], draws[0])
    assert found.nominal == NOMINAL
    assert found.observed == pytest.approx(NOMINAL, abs=0.01)  # 40 000 values: three standard deviations are 0.0075
    assert found.ratio == pytest.approx(1, abs=0.02)
    assert found.error == pytest.approx([math.sqrt(1 + 1 / members)] * 4, abs=0.03)


def test_an_ensemble_twice_too_sure_has_half_the_ratio_and_too_little_coverage() -> None:
    draws = torch.randn(11, 50, 1, 1, 400, dtype=torch.float64)
    found = calibrate(draws[1:], 2 * draws[0])
    # Truth of variance 4, members of variance 1: error^2 = 4 + 1/10, spread^2 = 1 + 1/10.
    assert found.ratio == pytest.approx(math.sqrt(1.1 / 4.1), abs=0.01)
    assert found.observed[NOMINAL.index(0.5)] == pytest.approx(0.28, abs=0.03)
    assert found.observed[NOMINAL.index(0.9)] < 0.65


def test_spread_and_error_belong_to_their_frames() -> None:
    growth = torch.tensor([1.0, 2.0, 4.0])[:, None, None]
    draws = growth * torch.randn(9, 40, 3, 1, 300)
    found = calibrate(draws[1:], draws[0])
    expected = [size * math.sqrt(1 + 1 / 8) for size in (1, 2, 4)]
    assert found.spread == pytest.approx(expected, rel=0.03)
    assert found.error == pytest.approx(expected, rel=0.03)


def test_batches_add_up() -> None:
    draws = torch.randn(4, 6, 2, 2, 5, 5)
    parts = [batch_sums(draws[1:, part], draws[0, part]) for part in (slice(0, 4), slice(4, 6))]
    together = calibrate(draws[1:], draws[0])
    assert finish(parts).observed == pytest.approx(together.observed)
    assert finish(parts).spread == pytest.approx(together.spread)


def test_members_that_agree_exactly_with_the_truth_are_covered_and_nan_is_not() -> None:
    same = torch.ones(3, 2, 1, 1, 4)
    assert calibrate(same, same[0]).observed == (1.0,) * len(NOMINAL)
    broken = same.clone()
    broken[0] = math.nan
    assert calibrate(broken, same[0]).observed == (0.0,) * len(NOMINAL)
    assert Calibration((0.5,), (1.0,), (1.0,), (0.0,)).ratio == math.inf


def test_one_member_is_refused() -> None:
    draws = torch.randn(3, 2, 1, 1, 4)
    with pytest.raises(ValueError, match="`members` must hold at least 2 forecasts to have a spread, got 1"):
        calibrate(draws[:1], draws[0])
