"""Evaluations of the same data side by side: which may be compared, and which are seeds of one model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssno.evaluation.record import Evaluation
from ssno.evaluation.statistics import SeedSummary, summarise

SAME_DATA = ("dataset", "split", "points", "fields", "times", "trajectories", "fingerprint")


@dataclass(frozen=True)
class SeedGroup:
    """The runs of one model that differ in nothing but their seeds."""

    name: str
    model: str
    parameters: int
    runs: tuple[str, ...]
    summaries: Mapping[str, SeedSummary]


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


def group_by_seed(evaluations: Sequence[Evaluation], metrics: Sequence[str]) -> list[SeedGroup]:
    """Group runs that differ in their seed only; named after their model, or after a run if that is ambiguous."""
    check_comparable(evaluations)
    same_model: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        same_model.setdefault(json.dumps(_without_seed(evaluation), sort_keys=True), []).append(evaluation)
    labels = [_label(members[0]) for members in same_model.values()]
    groups = []
    for members in same_model.values():
        seeds = [member.seed for member in members if member.seed is not None]
        if len(set(seeds)) < len(seeds):
            runs = " and ".join(member.name for member in members)
            raise ValueError(f"{runs} are one model trained with the same seed, which counts once. Give other seeds.")
        label = _label(members[0])
        for metric in metrics:
            if metric not in members[0].scores.means:
                known = ", ".join(members[0].scores.means)
                raise ValueError(
                    f"`metrics`: there is no {metric!r} in the evaluation of {members[0].name}; it has {known}."
                )
        groups.append(
            SeedGroup(
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
