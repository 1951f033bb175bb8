"""The harness of design trials: labels."""

from benchmarks.design import label, words_of


def test_labels_name_what_was_changed() -> None:
    assert label("ssno", {}) == "ssno"
    assert label("ssno", {"optimizer": "soap", "learning_rate": 0.02}) == "ssno-soap-learning_rate0.02"


def test_long_forecasts_that_all_diverge_have_no_statistics_to_show() -> None:
    gone = {"diverged": 4, "trajectories": 4, "valid_time": 0.5, "spread": float("nan"), "spectrum": float("nan")}
    assert words_of(gone) == "4 of 4 diverged, valid 0.5"
    assert words_of(gone | {"diverged": 1, "spread": 1.0, "spectrum": 0.04}).endswith("spread 1.00, spectrum 0.04")
