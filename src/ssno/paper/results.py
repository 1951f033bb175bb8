"""Verdicts on claims, and the results of runs by row and column of a table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from ssno.base import number, read_json, write_json
from ssno.evaluation.statistics import SeedSummary, compare_seeds, summarise
from ssno.evaluation.tables import ResultTable
from ssno.evaluation.trivial import TRIVIAL, skill
from ssno.paper.trial import Trial
from ssno.paper.trivial import best_trivial_error, trivial_errors
from ssno.runs.checkpoint import TRIAL

# A claim "A is below B" holds if A is better by the rule of `ssno.evaluation.statistics.compare_seeds`; it does not
# hold if B is; otherwise, and always with a single seed, it is not decidable. If A diverges, nothing is decided. Where
# neither is below the best forecast that learns no dynamics, it does not matter who is better: both are without skill.

Answer = Literal["holds", "does not hold", "not decidable at this scale", "both without skill"]
OPEN: Answer = "not decidable at this scale"
NO_SKILL: Answer = "both without skill"
SPOKEN: Mapping[Answer, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    OPEN: "not decidable",
    NO_SKILL: "without skill",
}
"""Of several claims."""


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what our data say, and the numbers behind that."""

    claim: str
    answer: Answer
    evidence: str
    p: float | None = None
    """Of the test over seeds, if there was one."""


def below(
    claim: str,
    smaller: Sequence[float],
    larger: Sequence[float],
    *,
    factor: float = 1.0,
    paired: bool = False,
    trivial: tuple[float | None, float | None] = (None, None),
) -> Verdict:
    """Whether `smaller` is below `larger` by at least `factor`, over seeds; `paired` if equal places share a seed.

    `trivial` are the errors of the best trivial forecast for either, where they are known.
    """
    verdict = _below(claim, smaller, larger, factor=factor, paired=paired)
    known = [limit for limit in trivial if limit is not None]
    sides = zip((smaller, larger), trivial, strict=True)
    if len(known) < 2 or any(summarise(values).mean < limit for values, limit in sides if limit is not None):
        return verdict
    told = " and ".join(f"{limit:.3g}" for limit in dict.fromkeys(known))
    return replace(verdict, answer=NO_SKILL, evidence=f"{verdict.evidence}; a trivial forecast has {told}")


def _below(claim: str, smaller: Sequence[float], larger: Sequence[float], *, factor: float, paired: bool) -> Verdict:
    first, second = summarise(smaller), summarise(larger)
    ratio = second.mean / first.mean if first.mean else math.inf
    told = f"{shown(first)} against {shown(second)}: {ratio:.3g} times"
    compared = compare_seeds(smaller, larger, factor=factor, paired=paired)
    if math.isnan(compared.p):
        answer: Answer = "holds" if compared.outcome == "below" else OPEN
        return Verdict(claim, answer, f"{told}; {compared.why}")
    answers: dict[str, Answer] = {"below": "holds", "above": "does not hold", "open": OPEN}
    return Verdict(claim, answers[compared.outcome], f"{told}, p = {compared.p:.2g}", compared.p)


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


SKILL = "skill"
Cell = tuple[str, str]
"""A row and a column: label and case."""

Key = TypeVar("Key")


@dataclass(frozen=True)
class TrialResult:
    """What one trial gave. Values that are not finite mean that training or a forecast diverged."""

    values: Mapping[str, float]
    """Errors on test trajectories by their names, and `rel_l2_best_valid`, the number the paper says it reports."""
    curve: tuple[tuple[int, float], ...]
    """Epoch and validation `rel_l2`."""
    parameters: int
    seconds: float
    """Of training, wall time."""
    threads: int
    provenance: Mapping[str, Any]

    def store(self, folder: Path) -> None:
        """Write `trial.json` atomically."""
        write_json(folder / TRIAL, asdict(self))

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether a run has its result."""
        return (folder / TRIAL).is_file()

    @staticmethod
    def read(folder: Path) -> "TrialResult":
        """Read what `store` wrote."""
        remedy = "Delete it, and the run is judged again."
        known = read_json(folder / TRIAL, remedy=remedy)
        try:
            values = {key: number(value) for key, value in known.pop("values").items()}
            curve = tuple((int(epoch), number(value)) for epoch, value in known.pop("curve"))
            return TrialResult(values, curve, **known)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{folder / TRIAL} is damaged ({error}). {remedy}") from None


@dataclass(frozen=True)
class Results:
    """Outcomes of all trials of an experiment that are there.

    What is asked of cells without a run is left out, so that a campaign can be judged while it runs.
    """

    outcomes: Mapping[Trial, TrialResult]
    folder: Path
    """Holds the runs, each under its trial's name."""

    def only(self, trials: Sequence[Trial]) -> "Results":
        """What these trials gave."""
        wanted = set(trials)
        return Results({trial: found for trial, found in self.outcomes.items() if trial in wanted}, self.folder)

    def find(self, label: str, case: str | None = None) -> list[tuple[Trial, TrialResult]]:
        """The trials of a row, in one column or all."""
        return [
            (trial, outcome)
            for trial, outcome in self.outcomes.items()
            if trial.label == label and case in (None, trial.case)
        ]

    def values(self, label: str, case: str, metric: str = "rel_l2") -> list[float]:
        """A metric of one cell, a value per seed; infinite for a run that diverged before it could be measured."""
        if metric == SKILL:
            best = self.best_trivial((label, case))
            return [] if best is None else [skill(error, best) for error in self.values(label, case)]
        return [outcome.values.get(metric, math.inf) for _, outcome in self.find(label, case)]

    def there(self, cells: Mapping[Key, Cell], metric: str = "rel_l2") -> dict[Key, list[float]]:
        """A metric of those cells that have runs, by what they are called here."""
        return {key: found for key, cell in cells.items() if (found := self.values(*cell, metric))}

    def matched(self, first: Cell, second: Cell, metric: str = "rel_l2") -> tuple[list[float], list[float]]:
        """A metric of two cells for the seeds that both have, in the same order."""
        one, two = (
            {trial.seed: outcome.values.get(metric, math.inf) for trial, outcome in self.find(*cell)}
            for cell in (first, second)
        )
        seeds = sorted(one.keys() & two.keys())
        return [one[seed] for seed in seeds], [two[seed] for seed in seeds]

    def below(
        self,
        claim: str,
        smaller: Cell,
        larger: Cell,
        *,
        metric: str = "rel_l2",
        factor: float = 1.0,
        paired: bool = False,
    ) -> Iterator[Verdict]:
        """The verdict on a claim that one cell is below another, if both have runs; `paired` by their seeds."""
        if paired:
            ours, theirs = self.matched(smaller, larger, metric)
        else:
            ours, theirs = self.values(*smaller, metric), self.values(*larger, metric)
        if ours and theirs:
            trivial = self.best_trivial(smaller, metric), self.best_trivial(larger, metric)
            yield below(claim, ours, theirs, factor=factor, paired=paired, trivial=trivial)

    def best_trivial(self, cell: Cell, metric: str = "rel_l2") -> float | None:
        """The smallest error of a trivial forecast on the data of a cell, if its data are here."""
        found = self.find(*cell)
        return best_trivial_error(found[0][0], metric) if found else None

    def summary(self, label: str, case: str, metric: str = "rel_l2") -> SeedSummary:
        """A metric of one cell over seeds."""
        return summarise(self.values(label, case, metric))

    def cell(self, label: str, case: str, metric: str = "rel_l2") -> str:
        """The same as an entry of a table."""
        values = self.values(label, case, metric)
        return shown(summarise(values)) if values else ""

    def table(
        self,
        title: str,
        *,
        metric: str = "rel_l2",
        published: Mapping[Cell, float] | None = None,
        extra: Mapping[str, Mapping[str, str]] | None = None,
    ) -> ResultTable:
        """Rows and columns in the order of the runs, mean ± spread over seeds, `extra` columns first; trivial
        forecasts last.

        `published` values stand beside the metric that they most likely are, and beside no other.
        """
        labels = list(dict.fromkeys(trial.label for trial in self.outcomes))
        first = {trial.case: trial for trial in reversed(list(self.outcomes))}
        cases = list(dict.fromkeys(trial.case for trial in self.outcomes))
        printed = (published or {}) if metric == self.published_metric() else {}
        beside = [case for case in cases if any((label, case) in printed for label in labels)]

        def cells(of_case: Mapping[str, str], label: str = "") -> Iterator[str]:
            for case, cell in of_case.items():
                yield cell
                if case in beside:
                    yield f"{printed[label, case]:g}" if (label, case) in printed else ""

        headings = ("", *(extra or {}), *(h for case in cases for h in ([case, "paper"] if case in beside else [case])))
        rows = [
            (
                label,
                *(column.get(label, "") for column in (extra or {}).values()),
                *cells({case: self.cell(label, case, metric) for case in cases}, label),
            )
            for label in labels
        ]
        for name in TRIVIAL:
            errors = {case: trivial_errors(first[case]).get(name, {}).get(metric) for case in cases}
            if any(error is not None for error in errors.values()):
                shown_errors = {case: "" if error is None else f"{error:.3g}" for case, error in errors.items()}
                rows.append((name, *("" for _ in extra or {}), *cells(shown_errors)))
        return ResultTable(title, headings, tuple(rows))

    def published_metric(self) -> str:
        """What the paper prints: rollouts in its [0, 1] units, where a single field makes these one error."""
        scaled = "rel_l2_unit_interval"
        return scaled if all(scaled in outcome.values for outcome in self.outcomes.values()) else "rel_l2"

    def measured(self, metric: str) -> bool:
        """Whether all runs have a metric, apart from those that diverged."""
        if metric == SKILL:
            return any(self.best_trivial((trial.label, trial.case)) is not None for trial in self.outcomes)
        done = self.outcomes.values()
        finite = [outcome for outcome in done if math.isfinite(outcome.values.get("rel_l2", math.inf))]
        return all(metric in outcome.values for outcome in finite or done)

    def seconds(self) -> dict[str, str]:
        """Mean training time of every row, over problems and seeds."""
        times: dict[str, list[float]] = {}
        for trial, outcome in self.outcomes.items():
            times.setdefault(trial.label, []).append(outcome.seconds)
        return {label: f"{sum(each) / len(each):.0f}" for label, each in times.items()}

    def parameters(self) -> dict[str, str]:
        """Parameters of every row."""
        return {trial.label: f"{outcome.parameters:,}" for trial, outcome in self.outcomes.items()}

    def records(self) -> list[dict[str, Any]]:
        """One flat record per trial, for CSV."""
        return [
            {
                "model": trial.run.model.name,
                "label": trial.label,
                "case": trial.case,
                "points": trial.run.data.resolution,
                "seed": trial.seed,
                "parameters": outcome.parameters,
                "epochs": trial.run.train.epochs,
                "trajectories": trial.run.data.train,
                "train_seconds": round(outcome.seconds, 1),
                "threads": outcome.threads,
                **outcome.values,
                "run": trial.name,
                "commit": outcome.provenance["commit"],
            }
            for trial, outcome in self.outcomes.items()
        ]


def curve_of(lines: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, float], ...]:
    """Epoch and validation error from the lines of a metrics.jsonl."""
    scored = [line for line in lines if line.get("kind") == "epoch" and "rel_l2" in line]
    return tuple((int(line["epoch"]) + 1, float(line["rel_l2"])) for line in scored)
