"""Statistics over seeds, with made-up numbers whose answers are known; one rule for "better"."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ssno.evaluation.statistics import compare_seeds, holm, paired_test, rank, summarise, welch
from ssno.paper.results import below

ERRORS = st.lists(st.floats(1e-3, 1e3) | st.just(math.inf), min_size=1, max_size=4)


def test_mean_spread_and_confidence_of_three_numbers() -> None:
    summary = summarise([1.0, 2.0, 3.0])
    assert (summary.mean, summary.spread) == (2.0, 1.0)
    assert summary.confidence == pytest.approx(4.302652729911275 / math.sqrt(3))  # t_{0.975, 2}
    assert str(summary) == "2 ± 2.5"


def test_a_confidence_interval_holds_the_mean_in_95_of_100_cases() -> None:
    draws = stats.norm.rvs(size=(2000, 4), random_state=0)
    held = [abs(summary.mean) <= summary.confidence for summary in map(summarise, draws.tolist())]
    assert sum(held) / len(held) == pytest.approx(0.95, abs=0.015)


def test_one_seed_has_no_spread_and_a_diverged_one_no_finite_mean() -> None:
    assert math.isnan(summarise([0.5]).confidence)
    assert str(summarise([0.5])) == "0.5"
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
    ranking = rank({"a": summarise([0.2, 0.21, 0.19]), "b": summarise([0.1, 0.11, 0.09])})
    assert ranking.best == "b"
    assert ranking.sentence.startswith("b (0.1 ± 0.025) is best in rel_l2, against a (0.2 ± 0.025, p = ")
    assert ranking.sentence.endswith("Welch's test over seeds, 5 %.")


def test_overlapping_seeds_are_not_ranked() -> None:
    ranking = rank({"a": summarise([0.1, 0.2, 0.3]), "b": summarise([0.12, 0.22, 0.32])})
    assert ranking.best is None
    assert ranking.sentence.startswith("Not separable in rel_l2: a (0.2 ± 0.25) and b (0.22 ± 0.25, p = 0.8)")


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
    ranking = rank({"a": summarise([0.1]), "b": summarise([0.5, 0.51])})
    assert ranking.best is None
    assert "a has one seed, so its spread is not known" in ranking.sentence


def test_a_model_with_a_diverged_seed_loses_and_the_sentence_says_so() -> None:
    ranking = rank({"a": summarise([0.1, 0.11]), "b": summarise([0.2, math.inf])})
    assert ranking.best == "a"
    assert "A seed of b did not stay finite" in ranking.sentence


def test_ranking_needs_two() -> None:
    with pytest.raises(ValueError, match="Ranking needs at least 2 models, got a"):
        rank({"a": summarise([0.1, 0.2])})


@given(ERRORS, ERRORS)
def test_tables_and_verdicts_never_disagree(first, second) -> None:
    best = rank({"first": summarise(first), "second": summarise(second)}).best
    verdicts = below("", first, second).answer, below("", second, first).answer
    assert (best == "first", best == "second") == (verdicts[0] == "holds", verdicts[1] == "holds")


def test_values_that_may_be_negative_are_compared_as_they_are() -> None:
    first, second = [-0.1, 0.0, 0.1], [0.9, 1.0, 1.1]
    comparison = compare_seeds(first, second)
    assert comparison.outcome == "below"
    assert comparison.p == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)


def test_the_test_of_pairs_is_students() -> None:
    first, second = [1.0, 2.0, 4.0, 3.0], [1.5, 2.2, 4.9, 3.1]
    assert paired_test(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert paired_test([1.0, 2.0], [1.0, 2.0]) == 1.0


def test_holm_multiplies_the_smallest_p_by_their_number_and_keeps_the_order() -> None:
    assert holm([0.03, 0.01, 0.04, 0.5]) == pytest.approx([0.09, 0.04, 0.09, 0.5])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.7, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
