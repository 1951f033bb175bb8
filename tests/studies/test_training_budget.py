"""Budgets that grow: shared runs, who is ahead, and the law that goes on to the published training."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from studies.training_budget import BUDGET

from ssno.paper.catalogue import find_experiment
from ssno.paper.results import Results, TrialResult

EPOCHS = {"1 epoch": 1, "7 epochs": 7, "50 epochs": 50}


def made_up(error, *, without: tuple[str, ...] = ()) -> Results:
    """Results of scale `tenth`: SS-NO's errors fall faster, by less for odd seeds."""
    outcomes = {}
    for trial in replace(BUDGET, scale="tenth").trials():
        model, budget = trial.label.rsplit(", ", 1)
        if budget not in without:
            value = error(model, EPOCHS[budget]) * (1 + 0.02 * trial.seed)
            values = {"rel_l2": 3 * value, "rel_l2_unit_interval": value, "rel_l2_onestep": value / 5}
            outcomes[trial] = TrialResult(values, (), 1000, 30.0 * EPOCHS[budget], 1, {"commit": "none"})
    return Results(outcomes, Path("nowhere"))


def falling(model: str, epochs: int) -> float:
    return 0.05 * epochs ** (-0.2 if model == "FFNO" else -0.4)


@pytest.fixture(autouse=True)
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("results", "trivial"):
        monkeypatch.setattr(f"ssno.paper.{module}.trivial_errors", lambda trial: {})


def test_the_longest_runs_are_those_of_the_headline() -> None:
    mine = {trial.name for trial in replace(BUDGET, scale="tenth").trials() if trial.label.endswith("50 epochs")}
    theirs = {t.name for t in find_experiment("headline", scale="tenth").trials() if t.run.train.precision == "bf16"}
    assert mine == {name for name in theirs if name in mine}
    assert len(mine) == 3 * 3 + 3 * 2 + 2 * 2  # KS 0.1, Burgers, and two more viscosities once
    small = [trial.run.data.train for trial in replace(BUDGET, scale="cpu", seeds=1).trials()]
    assert small == [128] * 4 + [512] * 4 + [2048, 2048, 1844, 1844]


def test_verdicts_say_who_is_ahead_and_how_far_the_paper_is() -> None:
    found = replace(BUDGET, scale="tenth").judge(made_up(falling))
    answers = {verdict.claim: verdict.answer for verdict in found.verdicts}
    assert answers["KS 0.1, 1 epoch: SS-NO below FFNO"] == "not decidable at this scale"
    assert answers["KS 0.1, 50 epochs: SS-NO below FFNO"] == "holds"
    assert answers["KS 0.1, 50 epochs: SS-NO within 1.5 times of the printed 0.0048 ([0, 1] units)"] == "does not hold"
    assert answers["Burgers, 50 epochs: SS-NO within 1.5 times of the printed 0.0121 ([0, 1] units)"] == "holds"
    law = {(row[0], row[1]): row for row in found.tables[-1].rows}["KS 0.1", "SS-NO"]
    assert law[2].startswith("-0.400 ±")
    assert float(law[3].split()[0]) == pytest.approx(0.051 * 500**-0.4, rel=0.02)
    assert law[4] == "0.0048"
    figure = found.figures["budget"]()
    assert [len(axes.lines) for axes in figure.axes] == [5, 5, 2, 2]  # dots and a law for two models, and the star


def test_without_all_budgets_there_is_no_law() -> None:
    found = replace(BUDGET, scale="tenth").judge(made_up(falling, without=("7 epochs",)))
    assert len(found.tables) == 3
    assert found.figures["budget"]()
    wild = replace(BUDGET, scale="tenth").judge(made_up(lambda model, epochs: math.inf))
    assert len(wild.tables) == 3
