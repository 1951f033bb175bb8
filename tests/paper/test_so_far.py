"""Campaigns that are under way: whatever runs are there are judged, and nothing is said about the others."""

from pathlib import Path

import pytest

from ssno.paper.catalogue import experiments, find_experiment
from ssno.paper.results import Results, TrialResult
from ssno.paper.trial import Trial

LOOK_INTO_RUNS = ("damping", "discretisation", "transfer", "swe", "airfoils")  # tested with real runs: test_reproduce
READ_LOGS = ("learning-rates", "airfoil-rates", "sphere-rates")
MADE_UP = [
    name for name, one in experiments().items() if name not in (*LOOK_INTO_RUNS, *READ_LOGS) and one.cpu is not None
]


class Anything(dict):
    """The metrics of a made-up run: whatever is asked for is there."""

    def __init__(self, value: float):
        super().__init__(rel_l2=value, rel_l2_onestep=value / 5, rel_l2_unit_interval=value / 3)

    def get(self, key: str, default: float = 0.0) -> float:
        return self.setdefault(key, self["rel_l2"])


def made_up(trials: list[Trial]) -> Results:
    """Errors that differ from run to run."""
    outcomes = {}
    for place, trial in enumerate(trials):
        curve = ((1, 0.5), (2, 0.1 + 0.01 * place))
        outcomes[trial] = TrialResult(Anything(0.1 + 0.01 * place), curve, 1000, 30.0, 1, {"commit": "none"})
    return Results(outcomes, Path("nowhere"))


@pytest.fixture(autouse=True)
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("results", "trivial"):
        monkeypatch.setattr(f"ssno.paper.{module}.trivial_errors", lambda trial: {})


@pytest.mark.parametrize("name", MADE_UP)
def test_any_part_of_a_campaign_is_judged(name: str) -> None:
    experiment = find_experiment(name, seeds=2)
    trials = experiment.trials()
    claims = {verdict.claim for verdict in experiment.judge(made_up(trials)).verdicts}
    for kept in (trials[:1], trials[1:], trials[::3], trials[1::3]):
        part = experiment.judge(made_up(kept))
        assert {verdict.claim for verdict in part.verdicts} <= claims
        assert len(part.records) == len(kept)
        assert part.tables
        assert all(draw().axes for draw in part.figures.values())


@pytest.mark.parametrize("name", ["navier-stokes", "euler"])
def test_a_row_the_paper_does_not_have_changes_no_judgement(name: str) -> None:
    experiment = find_experiment(name, scale="cpu")
    results = made_up(experiment.trials())
    without = results.only([trial for trial in results.outcomes if trial.label != "CNextU-Net"])
    assert len(without.outcomes) < len(results.outcomes)
    assert experiment.judge(without).verdicts == experiment.judge(results).verdicts


def test_pairs_share_a_seed() -> None:
    trials = find_experiment("ablation", seeds=2).trials()
    of = {(trial.label, trial.case, trial.seed): trial for trial in trials}
    wanted = [of["All, 16", "KS 0.075", 0], of["All, 16", "KS 0.075", 1], of["Frequency only, 16", "KS 0.075", 1]]
    results = made_up(wanted)
    all_learned, frequency = (("All, 16", "KS 0.075"), ("Frequency only, 16", "KS 0.075"))
    assert results.matched(all_learned, frequency) == (pytest.approx([0.11]), pytest.approx([0.12]))
    (verdict,) = results.below("a claim", all_learned, frequency, paired=True)
    assert verdict.evidence == "0.11 against 0.12: 1.09 times; one seed has no spread"
    assert not list(results.below("a claim", all_learned, ("Fixed, 16", "KS 0.075")))
    assert results.there({16: all_learned, 64: ("All, 64", "KS 0.075")}) == {16: pytest.approx([0.1, 0.11])}
