"""What a report is about: a run, how good it is, a few of its forecasts, and its inside.

The trajectories to look at are not favourites: the best, the median and the worst of those that were scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssno.data.trajectories import Trajectories
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.findings import RunInspection, inspect_run
from ssno.evaluation.record import Evaluation
from ssno.runs.folder import RunFolder

SPECTRUM_TRAJECTORIES = 16


@dataclass(frozen=True)
class RunReport:
    """Everything about one run that goes onto the page.

    `record` are the lines of its metrics.jsonl, `elsewhere` the words of a command that name other data than its own.
    """

    run: RunFolder
    data: Trajectories
    evaluation: Evaluation
    examples: Examples
    labels: Mapping[int, str]
    many: Examples
    findings: RunInspection
    record: Sequence[Mapping[str, Any]]
    elsewhere: tuple[str, ...] = ()


def gather(
    run: RunFolder,
    data: Trajectories,
    evaluation: Evaluation,
    *,
    record: Sequence[Mapping[str, Any]] = (),
    elsewhere: tuple[str, ...] = (),
) -> RunReport:
    """Collect the contents; `data` are the trajectories that `evaluation` scored."""
    labels = typical(evaluation.scores.trajectory_errors)
    return RunReport(
        run=run,
        data=data,
        evaluation=evaluation,
        examples=make_examples(run.forecaster, data, list(labels)),
        labels=labels,
        many=make_examples(run.forecaster, data, range(min(SPECTRUM_TRAJECTORIES, len(data)))),
        findings=inspect_run(run),
        record=record,
        elsewhere=elsewhere,
    )


def typical(errors: Sequence[float]) -> dict[int, str]:
    """The median, the best and the worst trajectory, in this order, with what they are."""
    if not errors:
        raise ValueError("`errors` is empty: no trajectory was scored.")
    order = sorted(range(len(errors)), key=errors.__getitem__)
    chosen: dict[int, str] = {}
    for number, what in ((order[len(order) // 2], "median"), (order[0], "best"), (order[-1], "worst")):
        chosen.setdefault(number, what)
    return {number: f"{what}: number {number}, error {errors[number]:.3g}" for number, what in chosen.items()}
