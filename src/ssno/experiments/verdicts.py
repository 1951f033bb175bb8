"""What the data say about a claim: it holds, it does not, or it cannot be decided at this scale.

A claim "A is below B" holds if the mean of A over seeds is smaller and Welch's test rejects equality at 5 %; it does
not hold if the mean is larger and the test rejects; otherwise, and always with a single seed, it is not decidable.
Errors spread by factors rather than by differences, so logarithms are compared. Runs of one network that share a seed
share first weights, batches and noise: they are compared in pairs, by Student's test on the ratios.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtr  # Student's t

from ssno.evaluation.seeds import LEVEL, Summary, summarise, welch

Answer = Literal["holds", "does not hold", "not decidable at this scale"]
OPEN: Answer = "not decidable at this scale"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what our data say, and the numbers behind that."""

    claim: str
    answer: Answer
    evidence: str


def below(
    claim: str, smaller: Sequence[float], larger: Sequence[float], *, factor: float = 1.0, paired: bool = False
) -> Verdict:
    """Whether `smaller` lies below `larger` by at least `factor`, over seeds; `paired` if equal places share a seed."""
    first, second = summarise(smaller), summarise(larger)
    ratio = second.mean / first.mean if first.mean else math.inf
    told = f"{shown(first)} against {shown(second)}: {ratio:.3g} times"
    if not math.isfinite(first.mean) or not math.isfinite(second.mean):
        if math.isfinite(first.mean):
            return Verdict(
                claim, "holds" if len(smaller) > 1 else OPEN, f"{told}; a run of the other did not stay finite"
            )
        return Verdict(claim, OPEN, f"{told}; a run did not stay finite")
    logs = [math.log(factor * value) for value in smaller], [math.log(value) for value in larger]
    p = paired_test(*logs) if paired else welch(*map(summarise, logs))
    if math.isnan(p):
        return Verdict(claim, OPEN, f"{told}; one seed has no spread")
    told = f"{told}, p = {p:.2g}"
    if not p < LEVEL:
        return Verdict(claim, OPEN, told)
    return Verdict(claim, "holds" if factor * first.mean < second.mean else "does not hold", told)


def paired_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of Student's test that the mean difference of pairs is zero; NaN for a single pair."""
    difference = summarise([b - a for a, b in zip(first, second, strict=True)])
    if math.isnan(difference.spread):
        return math.nan
    if not difference.spread:
        return float(difference.mean == 0)
    t = abs(difference.mean) / difference.spread * math.sqrt(len(difference.values))
    return float(2 * stdtr(len(difference.values) - 1, -t))


def fact(claim: str, true: bool, evidence: str) -> Verdict:
    """A claim that is computed, not sampled."""
    return Verdict(claim, "holds" if true else "does not hold", evidence)


def undecided(verdict: Verdict, why: str) -> Verdict:
    """The same claim, left open."""
    return Verdict(verdict.claim, OPEN, f"{verdict.evidence}; {why}")


def shown(summary: Summary) -> str:
    """Mean and standard deviation over seeds: 0.132 ± 0.011."""
    spread = "" if math.isnan(summary.spread) else f" ± {summary.spread:.2g}"
    return f"{summary.mean:.3g}{spread}"
