"""Learning rates by hand."""

import pytest

from ssno.training.objective import rate_factor


def test_cosine_falls_from_one_to_zero() -> None:
    factors = [rate_factor(step, 10, schedule="cosine", warmup=0.0) for step in range(11)]
    assert factors[0] == 1
    assert factors[5] == pytest.approx(0.5)
    assert factors[10] == pytest.approx(0)


def test_cosine_warms_up_linearly() -> None:
    assert [rate_factor(step, 20, schedule="cosine", warmup=0.2) for step in range(5)] == [0.25, 0.5, 0.75, 1, 1]


def test_one_cycle_rises_to_one_and_falls_to_a_ten_thousandth() -> None:
    factors = [rate_factor(step, 101, schedule="one-cycle", warmup=0.3) for step in range(101)]
    assert factors[0] == pytest.approx(1 / 25)
    assert max(factors) == factors[30] == 1
    assert factors[100] == pytest.approx(1e-4)


def test_constant_stays() -> None:
    assert {rate_factor(step, 10, schedule="constant", warmup=0.3) for step in range(10)} == {1.0}


@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
def test_a_run_of_one_step_has_a_rate(schedule) -> None:
    assert 0 <= rate_factor(0, 1, schedule=schedule, warmup=0.3) <= 1
