"""The benchmark harness, with made-up contestants: what is checked, in which order they run, what rows say."""

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from benchmarks.entry import Entry, Goal, Growth, TimedCall, difference
from benchmarks.measure import LEAST_ROUNDS, WrongAnswer, measure
from benchmarks.peak import gemm_peak

ANSWER = torch.tensor([1.0, 2.0, 2.0])


def asleep(seconds: float, answer: torch.Tensor = ANSWER, log: list[float] | None = None) -> Callable:
    def run() -> torch.Tensor:
        if log is not None:
            log.append(seconds)
        time.sleep(seconds)
        return answer

    return run


def entry(tasks: dict[str, TimedCall], **changes) -> Entry:
    settings = {"what": "made up", "sizes": {"n": 3}, "build": lambda: tasks, "reference": "slow", "seconds": 0.0}
    return Entry(**{**settings, **changes})


def test_the_name_is_derived_from_the_sizes() -> None:
    assert entry({}, sizes={"n": 64, "b": 2}).name == "made-up-n64-b2"


def test_a_contestant_twice_as_fast_has_ratio_two() -> None:
    tasks = {"slow": TimedCall(asleep(0.02)), "fast": TimedCall(asleep(0.01), expected=lambda: ANSWER)}
    slow, fast = measure(entry(tasks, goals={"fast": Goal(at_least=1.5)}))
    assert slow.ratio == 1.0
    assert slow.met is None
    assert 1.6 < fast.ratio < 2.2
    assert (fast.met, fast.goal, fast.error) == (True, ">= 1.5x", 0.0)
    assert fast.rounds == LEAST_ROUNDS >= 7
    assert fast.ms_lower <= fast.ms <= fast.ms_upper
    assert fast.ratio_lower <= fast.ratio <= fast.ratio_upper


def test_contestants_take_turns() -> None:
    log: list[float] = []
    measure(entry({"slow": TimedCall(asleep(2e-4, log=log)), "fast": TimedCall(asleep(1e-4, log=log))}))
    rounds = [tuple(log[i : i + 2]) for i in range(0, len(log), 2)]
    assert all(set(one) == {2e-4, 1e-4} for one in rounds)
    assert len(set(rounds)) == 2, "the order changes from round to round"


def test_a_wrong_answer_is_refused_before_anything_is_timed() -> None:
    log: list[float] = []
    tasks = {
        "slow": TimedCall(asleep(1e-4, log=log)),
        "wrong": TimedCall(asleep(0.0, ANSWER * 1.01), expected=lambda: ANSWER),
    }
    with pytest.raises(WrongAnswer, match=r"made-up-n3: 'wrong' differs .* by 0.01 \(relative\), allowed are 0.0001"):
        measure(entry(tasks))
    assert log == []
    assert measure(entry(tasks, tolerance=0.02))[1].error == pytest.approx(0.01, rel=1e-4)


def test_every_contestant_is_closed_even_after_a_wrong_answer() -> None:
    closed: list[str] = []
    tasks = {
        "slow": TimedCall(asleep(0.0), close=lambda: closed.append("slow")),
        "wrong": TimedCall(asleep(0.0, -ANSWER), expected=lambda: ANSWER, close=lambda: closed.append("wrong")),
    }
    with pytest.raises(WrongAnswer, match="by 2"):
        measure(entry(tasks))
    assert closed == ["slow", "wrong"]


def test_answers_may_be_fetched_outside_the_timed_run() -> None:
    fetched: list[int] = []

    def fetch() -> torch.Tensor:
        fetched.append(1)
        return ANSWER

    measure(entry({"slow": TimedCall(lambda: None, expected=lambda: ANSWER, fetch=fetch)}))
    assert fetched == [1]


def test_times_are_per_unit_of_work() -> None:
    tasks = {"slow": TimedCall(asleep(0.01)), "fast": TimedCall(asleep(0.01), amount=10)}
    slow, fast = measure(entry(tasks))
    assert 8 < fast.ratio < 12
    assert slow.ms > 5 * fast.ms


def test_useful_work_is_compared_with_a_matrix_product_in_the_same_rounds() -> None:
    (row,) = measure(entry({"slow": TimedCall(asleep(0.01))}, gflop=1.0, goals={"slow": Goal(fraction=1e6)}))
    assert row.gflop_per_s == pytest.approx(1e3 / row.ms)
    assert row.fraction == pytest.approx(row.gflop_per_s / row.peak_gflop_per_s)
    assert row.met is False
    assert row.goal == ">= 1e+08 % of peak"


def test_growth_is_the_slope_of_time_over_size() -> None:
    tasks = {str(n): TimedCall(asleep(n * 1e-3)) for n in (1, 4, 8, 16)}
    rows = measure(entry(tasks, reference="1", growth=Growth("points", at_most=1.2, start=4)))
    assert [row.exponent is None for row in rows] == [True, True, True, False]
    assert rows[-1].exponent == pytest.approx(1, abs=0.15)
    assert (rows[-1].met, rows[-1].goal) == (True, "exponent <= 1.2")


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(ValueError, match=r"made-up-n3: the reference 'slow' is not among \['fast'\]"):
        measure(entry({"fast": TimedCall(asleep(0.0))}))


def test_threads_hold_inside_an_entry_only() -> None:
    seen: list[int] = []
    before = torch.get_num_threads()
    (row,) = measure(entry({"slow": TimedCall(lambda: seen.append(torch.get_num_threads()))}, threads=2))
    assert set(seen) == {2}
    assert row.threads == 2
    assert torch.get_num_threads() == before


def test_differences_are_relative_and_the_worst_part_counts() -> None:
    exact = [torch.ones(4), torch.full((2,), 10.0)]
    assert difference(exact, exact) == 0
    assert difference([torch.ones(4), torch.full((2,), 11.0)], exact) == pytest.approx(0.1)
    assert difference([torch.full((4,), 1.2), torch.full((2,), 11.0)], exact) == pytest.approx(0.2)
    assert difference(np.ones(3), np.ones((3, 1))) == float("inf")
    assert difference(torch.tensor([float("nan")]), torch.ones(1)) == float("inf")
    tiny = [torch.ones(4), torch.full((2,), 1e-12)]
    assert difference([torch.ones(4), torch.zeros(2)], tiny) < 1e-5


@pytest.mark.parametrize(
    ("goal", "ratio", "fraction", "met"),
    [
        (Goal(at_least=2.0), 2.0, None, True),
        (Goal(at_least=2.0), 1.9, None, False),
        (Goal(at_most=1.0), 1.1, None, False),
        (Goal(at_least=2.0, fraction=0.4), 3.0, 0.3, False),
        (Goal(at_least=2.0, fraction=0.4), 3.0, 0.5, True),
        (Goal(fraction=0.4), 3.0, None, False),
    ],
)
def test_goals(goal: Goal, ratio: float, fraction: float | None, met: bool) -> None:
    assert goal.met(ratio, fraction) is met


def test_the_peak_of_this_machine_is_a_sensible_number() -> None:
    before = torch.get_num_threads()
    assert 0.5 < gemm_peak(threads=1, size=256, repeats=5) < 5000
    assert torch.get_num_threads() == before
