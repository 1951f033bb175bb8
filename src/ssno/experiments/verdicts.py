"""What the data say about a claim: it holds, it does not, or it cannot be decided at this scale.

A claim "A is below B" holds if A is better by the rule of `ssno.evaluation.statistics.compare_seeds`; it does not hold
if B is; otherwise, and always with a single seed, it is not decidable. If A diverges, nothing is decided.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ssno.evaluation.statistics import SeedSummary, compare_seeds, summarise

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
    compared = compare_seeds(smaller, larger, factor=factor, paired=paired)
    if math.isnan(compared.p):
        answer: Answer = "holds" if compared.outcome == "below" else OPEN
        return Verdict(claim, answer, f"{told}; {compared.why}")
    answers: dict[str, Answer] = {"below": "holds", "above": "does not hold", "open": OPEN}
    return Verdict(claim, answers[compared.outcome], f"{told}, p = {compared.p:.2g}")


def fact(claim: str, true: bool, evidence: str) -> Verdict:
    """A claim that is computed, not sampled."""
    return Verdict(claim, "holds" if true else "does not hold", evidence)


def undecided(verdict: Verdict, why: str) -> Verdict:
    """The same claim, left open."""
    return Verdict(verdict.claim, OPEN, f"{verdict.evidence}; {why}")


def shown(summary: SeedSummary) -> str:
    """Mean and standard deviation over seeds: 0.132 ± 0.011."""
    spread = "" if math.isnan(summary.spread) else f" ± {summary.spread:.2g}"
    return f"{summary.mean:.3g}{spread}"
