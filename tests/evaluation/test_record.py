"""Evaluations on disk: missing, foreign, damaged in every place."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ssno.cli.compare import METRICS, sheet
from ssno.evaluation.record import Calibration, Evaluation, read_evaluation, write_evaluation
from ssno.evaluation.seeds import group_by_seed
from ssno.forecasting.divergence import Departure, Divergence
from ssno.forecasting.scores import Scores
from ssno.report.page import band, cards, metrics, summary

SCORES = Scores(
    means=dict.fromkeys((*METRICS, "valid_time"), 0.5),
    step_errors=(0.4, 0.6),
    trajectory_errors=(0.5,),
    step_quartiles=((0.3, 0.5), (0.5, 0.7)),
    divergences=(Divergence(0, 1, "not finite"),),
    departures=(Departure("u", "the mean", 1, 0, 1, 2.0, -1.0, 1.0),),
)
WHOLE = Evaluation(
    name="run",
    model="ssno",
    parameters=10,
    seed=0,
    dataset="ks",
    split="test",
    points=(64,),
    trajectories=1,
    given_until=0.0,
    times=(1.0, 2.0),
    fields=("u",),
    fingerprint="abc",
    scores=SCORES,
    baselines={"persistence": SCORES},
    seconds=0.1,
    calibration=Calibration((0.5,), (0.4,), (0.1, 0.2), (0.1, 0.3)),
    config={"config": {"model": "ssno"}, "run": {"train": {"seed": 0}}},
    provenance={"commit": "made up"},
)


def changed(value: Any) -> Iterator[Any]:
    """The same JSON with one place at a time missing, or holding something else."""
    yield from (None, "text", -1, 10**400, 1.5, [], {}, [[]], {"a": 1})
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            yield from ({**value, name: wrong} for wrong in changed(inner))
        yield {**value, "surprise": 3}
    elif isinstance(value, list):
        yield value[:-1]
        for place, inner in enumerate(value):
            yield from ([*value[:place], wrong, *value[place + 1 :]] for wrong in changed(inner))


def test_what_was_stored_is_read(tmp_path: Path) -> None:
    assert read_evaluation(write_evaluation(WHOLE, tmp_path / "new" / "evaluation.json")) == WHOLE


def test_numbers_that_are_not_finite_survive_the_file(tmp_path: Path) -> None:
    far = replace(SCORES, means={"rel_l2": math.inf}, step_errors=(1.0, math.inf), trajectory_errors=(math.inf,))
    path = write_evaluation(replace(WHOLE, scores=far), tmp_path / "evaluation.json")
    assert "Infinity" not in path.read_text()
    assert read_evaluation(path).scores == far


def complaint(path: Path) -> str:
    """Read an evaluation and use it as commands and pages do; what is wrong with it, if anything."""
    try:
        found = read_evaluation(path)
        sheet(group_by_seed([found], METRICS), found, METRICS).terminal()
    except ValueError as error:
        return str(error)
    band(found.scores)
    assert summary(found)
    assert cards(found)
    assert metrics(found)
    return ""


def test_every_damage_is_told_or_does_no_harm(tmp_path: Path) -> None:
    path = write_evaluation(WHOLE, tmp_path / "evaluation.json")
    told = []
    for content in changed(json.loads(path.read_text())):
        path.write_text(json.dumps(content))
        told.append(complaint(path))
    named = [words for words in told if str(path) in words and ("ssno evaluate" in words or "Upgrade ssno" in words)]
    assert len(named) > 500
    assert all(not words or words in named or "`metrics`: there is no" in words for words in told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", r"evaluation.json is not valid JSON .* Make it again with: ssno evaluate"),
        ('{"format": "else"}', "does not have the format 'ssno-evaluation'"),
        ('{"format": "ssno-evaluation", "version": 9}', "has format version 9; this ssno reads version 1"),
        ('{"format": "ssno-evaluation", "version": 1}', "is damaged or was edited by hand"),
    ],
)
def test_files_that_are_no_evaluations_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "evaluation.json").write_text(text)
    with pytest.raises(ValueError, match=told):
        read_evaluation(tmp_path / "evaluation.json")


def test_a_missing_one_is_made_by_a_command(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no .*evaluation.json. Make it with: ssno evaluate "):
        read_evaluation(tmp_path / "evaluation.json")


def test_evaluations_from_before_0_2_have_their_divergences(tmp_path) -> None:
    path = write_evaluation(WHOLE, tmp_path / "evaluation.json")
    text = path.read_text().replace('"divergences"', '"runaways"').replace('"not finite"', '"runaway"')
    path.write_text(text)
    assert '"runaways"' in text
    assert read_evaluation(path).scores.divergences == (Divergence(0, 1, "too large"),)
