"""Interleaved timing: turns are fair, medians resist outliers, budgets hold."""

import time

import pytest

from ssno.evaluation.cost import Timing, quick_seconds, time_interleaved


def test_everyone_takes_turns_and_the_first_turn_rotates() -> None:
    calls = ""

    def caller(name: str):
        def call() -> None:
            nonlocal calls
            calls += name

        return call

    timings = time_interleaved({n: caller(n) for n in "abc"}, budget=0, least_rounds=3, warm_up=1)
    assert calls == "abc" + "abc" + "bca" + "cab"
    assert {len(timing.seconds) for timing in timings.values()} == {3}


def test_slow_things_take_longer() -> None:
    timings = time_interleaved(
        {"fast": lambda: time.sleep(0.001), "slow": lambda: time.sleep(0.02)}, budget=0, least_rounds=3
    )
    assert timings["slow"].median > 0.019
    assert timings["slow"].median > 5 * timings["fast"].median


def test_the_budget_allows_more_rounds_up_to_the_most() -> None:
    few = time_interleaved({"a": lambda: time.sleep(0.01)}, budget=0.05, least_rounds=1)["a"]
    many = time_interleaved({"a": lambda: None}, budget=5, least_rounds=1, most_rounds=40)["a"]
    assert 2 <= len(few.seconds) <= 6
    assert len(many.seconds) == 40


def test_median_and_quartiles_ignore_an_outlier() -> None:
    timing = Timing((1.0, 2.0, 3.0, 4.0, 500.0))
    assert timing.median == 3.0
    assert timing.quartiles == (2.0, 4.0)
    assert Timing((7.0,)).quartiles == (7.0, 7.0)


def test_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="`least_rounds` must be between 1 and most_rounds = 200, got 0"):
        time_interleaved({}, budget=1, least_rounds=0)


def test_a_quick_timing_is_the_median_without_the_first_call() -> None:
    naps = iter([0.2, 0.001, 0.2, 0.001])
    assert 0.001 <= quick_seconds(lambda: time.sleep(next(naps))) < 0.1
    assert next(naps, None) is None
