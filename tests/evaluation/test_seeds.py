"""Statistics over seeds, with made-up numbers whose answers are known."""

import math
from dataclasses import replace

import pytest
from scipy import stats

from ssno.evaluation.evaluate import Evaluation
from ssno.evaluation.seeds import group_by_seed, number, rank, summarise, welch
from ssno.forecasting.scores import Scores


def evaluation(name: str, error: float, *, model: str = "ssno", seed: int | None = 0, **changes) -> Evaluation:
    width = changes.pop("width", 8)
    described = {"config": {"model": model, "width": width}, "run": {"train": {"seed": seed, "epochs": 2}}}
    known = {
        "name": name,
        "model": model,
        "parameters": 10,
        "seed": seed,
        "dataset": "ks",
        "split": "test",
        "points": (64,),
        "trajectories": 2,
        "given_until": 0.3,
        "times": (0.4, 0.5),
        "fields": ("u",),
        "fingerprint": "abc",
        "scores": Scores({"rel_l2": error, "valid_time": 1 / error}, (error, error), (error, error)),
        "config": described,
    }
    return Evaluation(**{**known, **changes})


def test_mean_spread_and_confidence_of_three_numbers() -> None:
    summary = summarise([1.0, 2.0, 3.0])
    assert (summary.mean, summary.spread) == (2.0, 1.0)
    assert summary.confidence == pytest.approx(4.302652729911275 / math.sqrt(3))  # t_{0.975, 2}
    assert number(summary) == "2 ± 2.5"


def test_a_confidence_interval_holds_the_mean_in_95_of_100_cases() -> None:
    draws = stats.norm.rvs(size=(2000, 4), random_state=0)
    held = [abs(summary.mean) <= summary.confidence for summary in map(summarise, draws.tolist())]
    assert sum(held) / len(held) == pytest.approx(0.95, abs=0.015)


def test_one_seed_has_no_spread_and_a_diverged_one_no_finite_mean() -> None:
    assert math.isnan(summarise([0.5]).confidence)
    assert number(summarise([0.5])) == "0.5"
    assert summarise([0.5, math.inf]).mean == math.inf
    with pytest.raises(ValueError, match="`values` is empty"):
        summarise([])


def test_welchs_test_is_that_of_scipy_and_knows_what_it_cannot_know() -> None:
    one, two = [0.1, 0.13, 0.12], [0.2, 0.5, 0.3, 0.4]
    assert welch(summarise(one), summarise(two)) == pytest.approx(stats.ttest_ind(one, two, equal_var=False).pvalue)
    assert math.isnan(welch(summarise(one), summarise([0.2])))
    same, other = summarise([0.1, 0.1]), summarise([0.2, 0.2])
    assert (welch(same, same), welch(same, other)) == (1.0, 0.0)


def test_a_clear_winner_is_called_best() -> None:
    verdict = rank({"a": summarise([0.2, 0.21, 0.19]), "b": summarise([0.1, 0.11, 0.09])})
    assert verdict.best == "b"
    assert verdict.sentence.startswith("b (0.1 ± 0.025) is best in rel_l2, against a (0.2 ± 0.025, p = ")
    assert verdict.sentence.endswith("Welch's test over seeds, 5 %.")


def test_overlapping_seeds_are_not_ranked() -> None:
    verdict = rank({"a": summarise([0.1, 0.2, 0.3]), "b": summarise([0.12, 0.22, 0.32])})
    assert verdict.best is None
    assert verdict.sentence.startswith("Not separable in rel_l2: a (0.2 ± 0.25) and b (0.22 ± 0.25, p = 0.82)")


def test_the_best_of_many_must_pass_holms_correction() -> None:
    best = summarise([0.10, 0.11, 0.12])
    near = summarise([0.125, 0.135, 0.15])
    p = welch(best, near)
    assert 0.025 < p < 0.05
    assert rank({"best": best, "near": near}).best == "best"
    # With a second rival just as near, the smaller p-value has to stay below 2.5 %.
    assert rank({"best": best, "near": near, "nearly": near}).best is None
    far = summarise([0.5, 0.51, 0.52])
    assert rank({"best": best, "near": near, "far": far}).sentence.endswith("5 %, Holm.")


def test_long_valid_times_are_good() -> None:
    groups = {"short": summarise([1.0, 1.1]), "long": summarise([5.0, 5.1])}
    assert rank(groups, "valid_time").best == "long"
    assert rank(groups, "rel_l2").best == "short"


def test_one_seed_is_never_best() -> None:
    verdict = rank({"a": summarise([0.1]), "b": summarise([0.5, 0.51])})
    assert verdict.best is None
    assert "a has one seed, so its spread is not known" in verdict.sentence


def test_a_model_with_a_diverged_seed_loses_and_the_sentence_says_so() -> None:
    verdict = rank({"a": summarise([0.1, 0.11]), "b": summarise([0.2, math.inf])})
    assert verdict.best == "a"
    assert "A seed of b did not stay finite" in verdict.sentence


def test_ranking_needs_two() -> None:
    with pytest.raises(ValueError, match="Ranking needs at least 2 models, got a"):
        rank({"a": summarise([0.1, 0.2])})


def test_runs_that_differ_in_their_seed_only_are_one_group() -> None:
    runs = [evaluation(f"run{seed}", 0.1 * (seed + 1), seed=seed) for seed in range(3)]
    runs.append(evaluation("ffno0", 0.5, model="ffno"))
    ours, other = group_by_seed(runs, ["rel_l2"])
    assert (ours.name, ours.runs) == ("ssno", ("run0", "run1", "run2"))
    assert ours.summaries["rel_l2"].values == pytest.approx((0.1, 0.2, 0.3))
    assert (other.name, other.runs) == ("ffno", ("ffno0",))


def test_two_sizes_of_one_model_are_two_groups_named_after_their_runs() -> None:
    groups = group_by_seed([evaluation("small", 0.2), evaluation("large", 0.1, width=64)], ["rel_l2"])
    assert [group.name for group in groups] == ["small", "large"]


def test_an_ensemble_is_not_one_more_seed_of_its_members() -> None:
    runs = [evaluation(f"run{seed}", 0.1, seed=seed) for seed in range(2)]
    ensemble = evaluation("ensemble of 2", 0.05, seed=None)
    ensemble = replace(ensemble, config={**runs[0].config, "members": ["run0", "run1"]})
    groups = group_by_seed([*runs, ensemble], ["rel_l2"])
    assert [(group.name, group.runs) for group in groups] == [
        ("ssno", ("run0", "run1")),
        ("ensemble of 2", ("ensemble of 2",)),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dataset": "burgers"}, r"different dataset \(ks and burgers\)"),
        ({"split": "valid"}, r"different split \(test and valid\)"),
        ({"points": (128,)}, r"different points \(\(64,\) and \(128,\)\)"),
        ({"times": (0.5, 0.6)}, "different times, so"),
        ({"fingerprint": "xyz"}, "different true frames, so their errors cannot be compared"),
    ],
)
def test_runs_evaluated_on_different_data_are_not_compared(change, told) -> None:
    with pytest.raises(ValueError, match=told):
        group_by_seed([evaluation("a", 0.1), evaluation("b", 0.2, seed=1, **change)], ["rel_l2"])


def test_the_same_seed_twice_is_not_two_samples() -> None:
    with pytest.raises(ValueError, match="a and b are one model trained with the same seed"):
        group_by_seed([evaluation("a", 0.1), evaluation("b", 0.2)], ["rel_l2"])


def test_an_unknown_metric_and_an_empty_list_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no 'mse' in the evaluation of a; it has rel_l2, valid_time"):
        group_by_seed([evaluation("a", 0.1)], ["mse"])
    with pytest.raises(ValueError, match="There is nothing to compare"):
        group_by_seed([], ["rel_l2"])
