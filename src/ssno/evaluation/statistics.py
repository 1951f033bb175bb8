"""Statistics of a metric over a few seeds: mean, spread, confidence, and whether one model is better than another.

    mean +- t_{0.975, n-1} s / sqrt(n)                       95 % confidence interval of the mean over n seeds (Student)
    t = (m1 - m2) / sqrt(s1^2/n1 + s2^2/n2)                  Welch's test, degrees of freedom after Satterthwaite
    t = mean(d) / (s_d / sqrt(n))                            Student's test on differences d of paired seeds

s is the standard deviation over seeds, with n - 1. There is one rule for "better", `compare_seeds`: errors spread by
factors rather than by differences, so positive values are compared by their logarithms, and one of two models is better
if the test rejects at 5 %, two-sided, that the means are equal. One seed has no spread, so it decides nothing; a model
with a seed that did not stay finite loses. Runs of one network that share a seed share first weights, batches and
noise, and may be compared in pairs. `rank` applies the rule to the best of several models, with Holm's correction.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

# SciPy's statistics take most of a second to import, so they are imported where seeds are compared.

LEVEL = 0.05
HIGHER_IS_BETTER = ("correlation_time", "valid_time", "skill")


@dataclass(frozen=True)
class SeedSummary:
    """A metric over seeds. Spread and confidence (half the width of the 95 % interval) are NaN for a single seed."""

    values: tuple[float, ...]
    mean: float
    spread: float
    confidence: float

    def __str__(self) -> str:
        """Mean and confidence: 0.132 ± 0.011."""
        return f"{self.mean:.3g}" if math.isnan(self.confidence) else f"{self.mean:.3g} ± {self.confidence:.2g}"


@dataclass(frozen=True)
class Comparison:
    """Whether one model's metric is below another's: "below", "above" or "open", the p-value, and why it is open."""

    outcome: Literal["below", "above", "open"]
    p: float
    why: str = ""


@dataclass(frozen=True)
class Ranking:
    """The best model in a metric (None if the seeds do not decide), the p-values behind it, and a sentence."""

    metric: str
    best: str | None
    p_values: Mapping[str, float]
    sentence: str


def summarise(values: Sequence[float]) -> SeedSummary:
    """Mean, standard deviation and confidence over seeds. A value that is not finite makes all three infinite."""
    if not values:
        raise ValueError("`values` is empty: there is no seed to summarise.")
    known = tuple(float(value) for value in values)
    if not all(map(math.isfinite, known)):
        return SeedSummary(known, -math.inf if -math.inf in known else math.inf, math.inf, math.inf)
    count, mean = len(known), statistics.fmean(known)
    if count == 1:
        return SeedSummary(known, mean, math.nan, math.nan)
    spread = statistics.stdev(known)
    from scipy.special import stdtrit

    return SeedSummary(known, mean, spread, float(stdtrit(count - 1, 1 - LEVEL / 2)) * spread / math.sqrt(count))


def welch(first: SeedSummary, second: SeedSummary) -> float:
    """Two-sided p-value of Welch's test that two means over seeds are equal; NaN if a spread is not known."""
    if not all(math.isfinite(summary.spread) for summary in (first, second)):
        return math.nan
    if not first.spread and not second.spread:  # no spread at all: equal or not
        return float(first.mean == second.mean)
    from scipy.stats import ttest_ind_from_stats

    one, two = ((summary.mean, summary.spread, len(summary.values)) for summary in (first, second))
    return float(ttest_ind_from_stats(*one, *two, equal_var=False).pvalue)


def paired_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of Student's test that the mean difference of pairs is zero; NaN for a single pair."""
    difference = summarise([b - a for a, b in zip(first, second, strict=True)])
    if not math.isfinite(difference.spread):
        return math.nan
    if not difference.spread:
        return float(difference.mean == 0)
    from scipy.stats import t  # `ttest_rel` warns where differences are almost equal

    error = difference.spread / math.sqrt(len(difference.values))
    return float(2 * t.sf(abs(difference.mean) / error, len(difference.values) - 1))


def compare_seeds(
    first: Sequence[float], second: Sequence[float], *, factor: float = 1.0, paired: bool = False
) -> Comparison:
    """Whether `factor` times the first metric is below the second; `paired` if equal places share a seed."""
    if min(len(first), len(second)) < 2:
        return Comparison("open", math.nan, "one seed has no spread")
    finite = [all(map(math.isfinite, values)) for values in (first, second)]
    if not all(finite):
        outcome = "open" if not any(finite) else "below" if finite[0] else "above"
        return Comparison(outcome, math.nan, "a seed did not stay finite")  # type: ignore[arg-type]
    scaled = [factor * value for value in first], list(second)
    if min(*scaled[0], *scaled[1]) > 0:
        scaled = [math.log(value) for value in scaled[0]], [math.log(value) for value in scaled[1]]
    one, two = map(summarise, scaled)
    p = paired_test(*scaled) if paired else welch(one, two)
    if not p < LEVEL:
        return Comparison("open", p, "not significant")
    return Comparison("below" if one.mean < two.mean else "above", p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction for several tests: the smallest p-value times their number k, the next times k - 1, ...

    Those below the level may be called significant together: that one of them is so by chance has at most this
    probability.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    scaled = accumulate((min(1.0, p_values[i] * (len(order) - place)) for place, i in enumerate(order)), max)
    found = dict(zip(order, scaled, strict=True))
    return [found[i] for i in range(len(p_values))]


def rank(groups: Mapping[str, SeedSummary], metric: str = "rel_l2") -> Ranking:
    """Which model is best, if the seeds decide it."""
    if len(groups) < 2:
        raise ValueError(f"Ranking needs at least 2 models, got {', '.join(groups) or 'none'}.")
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    positive = all(value > 0 for summary in groups.values() for value in summary.values)

    def place_of(name: str) -> float:
        """By what the rule compares; a model that did not stay finite comes last."""
        values = groups[name].values
        if not all(map(math.isfinite, values)):
            return math.inf
        return sign * (statistics.geometric_mean(values) if positive else statistics.fmean(values))

    best, *others = sorted(groups, key=place_of)
    compared = {name: compare_seeds(groups[best].values, groups[name].values) for name in others}
    p_values = {name: comparison.p for name, comparison in compared.items()}
    unknown = [name for name in (best, *others) if len(groups[name].values) == 1]
    if unknown:
        why = f"{unknown[0]} has one seed, so its spread is not known; train it with other seeds (--train.seed)"
        return Ranking(metric, None, p_values, f"Not separable in {metric}: {why}.")
    tested = sorted((p, name) for name, p in p_values.items() if not math.isnan(p))
    diverged = [name for name in others if math.isnan(p_values[name])]
    if len(diverged) == len(others) and not math.isfinite(groups[best].mean):
        return Ranking(metric, None, p_values, f"Not separable in {metric}: no model stayed finite with every seed.")
    corrected = list(zip(holm([p for p, _ in tested]), *zip(*tested, strict=True), strict=True)) if tested else []
    overlapping = [(p, name) for adjusted, p, name in corrected if not adjusted < LEVEL]
    failed = f" A seed of {' and '.join(diverged)} did not stay finite." if diverged else ""
    if overlapping:
        against = ", ".join(f"{name} ({groups[name]}, p = {p:.2g})" for p, name in overlapping)
        sentence = f"Not separable in {metric}: {best} ({groups[best]}) and {against}"
        return Ranking(metric, None, p_values, f"{sentence}; Welch's test over seeds, 5 %.{failed}")
    against = ", ".join(f"{name} ({groups[name]}, p = {p:.2g})" for _, p, name in corrected)
    sentence = f"{best} ({groups[best]}) is best in {metric}"
    test = f", against {against}; Welch's test over seeds, 5 %" if against else ""
    return Ranking(metric, best, p_values, f"{sentence}{test}{', Holm' if len(tested) > 1 else ''}.{failed}")
