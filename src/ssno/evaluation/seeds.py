"""What can be said about models of which a few seeds were trained: mean, spread, confidence, and whether one is better.

    mean +- t_{0.975, n-1} s / sqrt(n)                       95 % confidence interval of the mean over n seeds (Student)
    t = (m1 - m2) / sqrt(s1^2/n1 + s2^2/n2)                  Welch's test, degrees of freedom after Satterthwaite

s is the standard deviation over seeds, with n - 1. The best model is only called best if Welch's test against every
other one rejects that their means are equal, at 5 %, two-sided, after Holm's correction for several comparisons;
otherwise the answer is "not separable". One seed has no spread, so nothing can be said about it.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats takes a second to import

from ssno.evaluation.evaluate import Evaluation

LEVEL = 0.05
HIGHER_IS_BETTER = ("correlation_time", "valid_time")
SAME_DATA = ("dataset", "split", "points", "fields", "times", "trajectories", "fingerprint")


@dataclass(frozen=True)
class Summary:
    """A metric over seeds. Spread and confidence (half the width of the 95 % interval) are NaN for a single seed."""

    values: tuple[float, ...]
    mean: float
    spread: float
    confidence: float


@dataclass(frozen=True)
class Group:
    """The runs of one model that differ in nothing but their seeds."""

    name: str
    model: str
    parameters: int
    runs: tuple[str, ...]
    summaries: Mapping[str, Summary]


@dataclass(frozen=True)
class Verdict:
    """Which group is best in a metric (None if they cannot be told apart), the p-values behind it, and a sentence."""

    metric: str
    best: str | None
    p_values: Mapping[str, float]
    sentence: str


def summarise(values: Sequence[float]) -> Summary:
    """Mean, standard deviation and confidence over seeds. A value that is not finite makes all three infinite."""
    if not values:
        raise ValueError("`values` is empty: there is no seed to summarise.")
    known = tuple(float(value) for value in values)
    if not all(map(math.isfinite, known)):
        return Summary(known, math.inf, math.inf, math.inf)
    count, mean = len(known), statistics.fmean(known)
    if count == 1:
        return Summary(known, mean, math.nan, math.nan)
    spread = statistics.stdev(known)
    return Summary(known, mean, spread, float(stdtrit(count - 1, 1 - LEVEL / 2)) * spread / math.sqrt(count))


def welch(first: Summary, second: Summary) -> float:
    """Two-sided p-value of Welch's test that two means over seeds are equal; NaN if a spread is not known."""
    if not all(math.isfinite(summary.spread) for summary in (first, second)):
        return math.nan
    parts = [summary.spread**2 / len(summary.values) for summary in (first, second)]
    if not sum(parts):  # no spread at all: equal or not
        return float(first.mean == second.mean)
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(summary.values) - 1) for part, summary in zip(parts, (first, second), strict=True)
    )
    return float(2 * stdtr(freedom, -abs(first.mean - second.mean) / math.sqrt(sum(parts))))


def rank(groups: Mapping[str, Summary], metric: str = "rel_l2") -> Verdict:
    """Say which group is best, or that the seeds do not tell."""
    if len(groups) < 2:
        raise ValueError(f"Ranking needs at least 2 models, got {', '.join(groups) or 'none'}.")
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    best, *others = sorted(groups, key=lambda name: sign * groups[name].mean)
    p_values = {name: welch(groups[best], groups[name]) for name in others}
    unknown = [name for name in (best, *others) if len(groups[name].values) == 1]
    if unknown:
        why = f"{unknown[0]} has one seed, so its spread is not known; train it with other seeds (--train.seed)"
        return Verdict(metric, None, p_values, f"Not separable in {metric}: {why}.")
    diverged = [name for name in others if not math.isfinite(groups[name].mean)]
    tested = sorted((p, name) for name, p in p_values.items() if name not in diverged)
    # Holm: the smallest p-value is compared with level / k, the next with level / (k - 1), and so on.
    adjusted = accumulate((p * (len(tested) - place) for place, (p, _) in enumerate(tested)), max)
    corrected = [(holm, p, name) for holm, (p, name) in zip(adjusted, tested, strict=True)]
    overlapping = [(p, name) for holm, p, name in corrected if not holm < LEVEL]
    failed = f" A seed of {' and '.join(diverged)} did not stay finite." if diverged else ""
    if overlapping:
        against = ", ".join(f"{name} ({number(groups[name])}, p = {p:.2g})" for p, name in overlapping)
        sentence = f"Not separable in {metric}: {best} ({number(groups[best])}) and {against}"
        return Verdict(metric, None, p_values, f"{sentence}; Welch's test over seeds, 5 %.{failed}")
    against = ", ".join(f"{name} ({number(groups[name])}, p = {p:.2g})" for _, p, name in corrected)
    sentence = f"{best} ({number(groups[best])}) is best in {metric}"
    test = f", against {against}; Welch's test over seeds, 5 %" if against else ""
    return Verdict(metric, best, p_values, f"{sentence}{test}{', Holm' if len(tested) > 1 else ''}.{failed}")


def number(summary: Summary) -> str:
    """Mean and confidence: 0.132 ± 0.011."""
    if math.isnan(summary.confidence):
        return f"{summary.mean:.3g}"
    return f"{summary.mean:.3g} ± {summary.confidence:.2g}"


def check_comparable(evaluations: Sequence[Evaluation]) -> None:
    """Refuse evaluations on different trajectories, frames or grids, and the same seed counted twice."""
    if not evaluations:
        raise ValueError("There is nothing to compare.")
    first = evaluations[0]
    for other in evaluations[1:]:
        for name in SAME_DATA:
            one, two = getattr(first, name), getattr(other, name)
            if one != two:
                what = "true frames" if name == "fingerprint" else name
                told = "" if name in ("fingerprint", "times") else f" ({one} and {two})"
                raise ValueError(
                    f"{first.name} and {other.name} were evaluated on different {what}{told}, so their errors cannot "
                    "be compared. Evaluate both on the same data, split, points and frames; runs with different "
                    "windows are scored on the same frames with `window.score_last`."
                )


def group_by_seed(evaluations: Sequence[Evaluation], metrics: Sequence[str]) -> list[Group]:
    """Put runs together that differ in their seed only; named after the model, or the run where models are alike."""
    check_comparable(evaluations)
    alike: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        alike.setdefault(json.dumps(_without_seed(evaluation), sort_keys=True), []).append(evaluation)
    labels = [_label(members[0]) for members in alike.values()]
    groups = []
    for members in alike.values():
        seeds = [member.seed for member in members if member.seed is not None]
        if len(set(seeds)) < len(seeds):
            runs = " and ".join(member.name for member in members)
            raise ValueError(f"{runs} are one model trained with the same seed: they are one sample, not several.")
        label = _label(members[0])
        for metric in metrics:
            if metric not in members[0].scores.means:
                known = ", ".join(members[0].scores.means)
                raise ValueError(
                    f"`metrics`: there is no {metric!r} in the evaluation of {members[0].name}; it has {known}."
                )
        groups.append(
            Group(
                name=label if labels.count(label) == 1 else members[0].name,
                model=members[0].model,
                parameters=members[0].parameters,
                runs=tuple(member.name for member in members),
                summaries={
                    metric: summarise([member.scores.means[metric] for member in members]) for metric in metrics
                },
            )
        )
    return groups


def _label(evaluation: Evaluation) -> str:
    """The model, or that it is an ensemble."""
    return evaluation.name if "members" in evaluation.config else evaluation.model


def _without_seed(evaluation: Evaluation) -> dict[str, Any]:
    run = evaluation.config.get("run", {})
    train = {name: value for name, value in run.get("train", {}).items() if name != "seed"}
    members = evaluation.config.get("members")
    return {"model": evaluation.config.get("config"), "run": {**run, "train": train}, "members": members}
