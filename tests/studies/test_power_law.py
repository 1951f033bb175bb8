"""Power laws through errors, against closed forms and NumPy."""

import math

import numpy as np
import pytest
from scipy import stats
from studies.power_law import fit_power_law


def test_a_law_without_scatter_is_found_and_goes_on() -> None:
    law = fit_power_law([1, 10, 100], [2.0, 2 * 10**-0.5, 0.2])
    assert (law.factor, law.exponent) == pytest.approx((2.0, -0.5))
    ahead = law.at(10_000)
    assert (ahead.value, ahead.low, ahead.high) == pytest.approx((0.02, 0.02, 0.02))


def test_slope_and_interval_are_those_of_linear_regression() -> None:
    random = np.random.default_rng(0)
    n = np.repeat([100.0, 1000.0, 5000.0], 3)
    errors = 3 * n**-0.3 * np.exp(random.normal(0, 0.1, 9))
    law = fit_power_law(n.tolist(), errors.tolist())
    line = stats.linregress(np.log(n), np.log(errors))
    assert (law.exponent, law.exponent_error) == pytest.approx((line.slope, line.stderr))
    ahead, x = law.at(1e5), np.log(n)
    left = np.log(errors) - line.intercept - line.slope * x
    s = math.sqrt((left**2).sum() / 7)
    width = stats.t.ppf(0.975, 7) * s * math.sqrt(1 / 9 + (math.log(1e5) - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())
    assert math.log(ahead.value) == pytest.approx(line.intercept + line.slope * math.log(1e5))
    assert (math.log(ahead.value / ahead.low), math.log(ahead.high / ahead.value)) == pytest.approx((width, width))


def test_two_points_leave_everything_open() -> None:
    assert fit_power_law([1, 10], [1.0, 0.1]).at(100).high == math.inf


@pytest.mark.parametrize(
    ("n", "errors"), [([1, 1], [1.0, 2.0]), ([1, 2], [1.0]), ([1, 2], [1.0, math.inf]), ([0, 1], [1.0, 1.0])]
)
def test_what_no_line_goes_through_is_refused(n, errors) -> None:
    with pytest.raises(ValueError, match="must"):
        fit_power_law(n, errors)
