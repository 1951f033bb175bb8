"""A power law through errors at several budgets, and what it says about a larger one.

    log error = a + b log n,   least squares;   mean at n*:  a + b log n*  ±  t_{0.975, m-2} s sqrt(1/m + (x* - x̄)² / S)

x = log n, S = sum (x - x̄)², s the standard deviation of the residuals with m - 2. The interval is of the mean error at
n*, if the law goes on: it says nothing about a law that bends.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ssno.evaluation.student import stdtrit


@dataclass(frozen=True)
class Extrapolated:
    """A mean with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PowerLaw:
    """error = factor n^exponent; the exponent with its standard error."""

    factor: float
    exponent: float
    exponent_error: float
    residual: float
    """Standard deviation of log error about the line."""
    count: int
    centre: float
    """Mean of log n."""

    def at(self, n: float | int) -> Extrapolated:
        """The mean error at n with its 95 % interval; the interval is infinite with two points."""
        ahead = math.log(n) - self.centre
        value = self.factor * n**self.exponent
        if self.count < 3:
            return Extrapolated(value, 0.0, math.inf)
        width = math.sqrt(self.residual**2 / self.count + (self.exponent_error * ahead) ** 2)
        reach = math.exp(float(stdtrit(self.count - 2, 0.975)) * width)
        return Extrapolated(value, value / reach, value * reach)


def fit_power_law(n: Sequence[float | int], errors: Sequence[float]) -> PowerLaw:
    """Least squares in logarithms; errors that are not finite are an error, as no line goes through them."""
    if len(n) != len(errors) or len(set(n)) < 2:
        raise ValueError(f"`errors` must belong to at least two different `n`, got {list(errors)} at {list(n)}.")
    if not all(math.isfinite(value) and value > 0 for value in (*n, *errors)):
        raise ValueError(f"`n` and `errors` must be positive and finite, got {list(n)} and {list(errors)}.")
    x, y = [math.log(value) for value in n], [math.log(value) for value in errors]
    centre, level = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((value - centre) ** 2 for value in x)
    slope = math.fsum((a - centre) * (b - level) for a, b in zip(x, y, strict=True)) / spread
    left = math.fsum((b - level - slope * (a - centre)) ** 2 for a, b in zip(x, y, strict=True))
    residual = math.sqrt(left / (len(x) - 2)) if len(x) > 2 else math.nan
    factor = math.exp(level - slope * centre)
    return PowerLaw(factor, slope, residual / math.sqrt(spread), residual, len(x), centre)
