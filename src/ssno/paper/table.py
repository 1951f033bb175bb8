"""The usual conclusion of an experiment: models in rows, problems in columns, claims "this row below that one"."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ssno.paper.experiment import Finding
from ssno.paper.results import Results, Verdict
from ssno.plots.summary import seed_dots

METRICS = {
    "rel_l2": "rollouts, physical units",
    "rel_l2_unit_interval": "rollouts in the paper's [0, 1] units",
    "rel_l2_onestep": "one step from true frames",
}


@dataclass(frozen=True)
class Claim:
    """On a problem, one row's error lies below another's, by a factor."""

    case: str
    smaller: str
    larger: str
    factor: float = 1.0
    paired: bool = False
    """Whether both are one network, so that equal seeds share first weights and batches."""

    def __str__(self) -> str:
        by = "" if self.factor == 1 else f"at least {self.factor:g} times "
        return f"{self.case}: {self.smaller} {by}below {self.larger}"

    def judged(self, results: Results) -> Iterator[Verdict]:
        """The verdict, if there are runs of both."""
        cells = ((row, self.case) for row in (self.smaller, self.larger))
        return results.below(str(self), *cells, factor=self.factor, paired=self.paired)


def compared(
    name: str,
    results: Results,
    *,
    claims: Iterable[Claim],
    printed: Mapping[tuple[str, str], float] | None = None,
    notes: tuple[str, ...] = (),
) -> Finding:
    """Tables of every metric with parameters and seconds, a verdict per claim, and a picture of all seeds.

    A claim about runs that are not all there is left out.
    """
    found = results.outcomes
    labels = list(dict.fromkeys(trial.label for trial in found))
    cases = list(dict.fromkeys(trial.case for trial in found))
    seconds = {label: [result.seconds for _, result in results.find(label)] for label in labels}
    extra = {
        "parameters": results.parameters(),
        "seconds of training": {label: f"{sum(each) / len(each):.0f}" for label, each in seconds.items()},
    }
    measured = [metric for metric in METRICS if all(metric in result.values for result in found.values())]
    sheets = tuple(
        results.sheet(
            f"{metric}: {METRICS[metric]}; mean ± standard deviation over seeds",
            metric=metric,
            published=printed,
            extra=extra,
        )
        for metric in measured
    )
    verdicts = tuple(verdict for claim in claims for verdict in claim.judged(results))
    drawn = {case: results.there({label: (label, case) for label in labels}) for case in cases}
    figures = {name: lambda: seed_dots(drawn, ylabel="rel_l2 of rollouts")}
    return Finding(sheets, verdicts, figures, tuple(results.records()), notes)
