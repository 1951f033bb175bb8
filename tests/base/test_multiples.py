"""Multiples of decimal numbers."""

import math

import pytest

from ssno.base.checks import in_units


@pytest.mark.parametrize(
    ("value", "unit", "times"), [(0.3, 0.1, 3), (0.7, 0.1, 7), (1.1, 1.1, 1), (0, 0.1, 0), (6, 2, 3)]
)
def test_multiples_of_decimal_numbers_are_whole(value: float, unit: float, times: int) -> None:
    assert in_units(value, unit) == times
    assert in_units(value, unit).is_integer()


def test_what_is_no_multiple_stays_as_it_is() -> None:
    assert in_units(0.35, 0.1) == 0.35 / 0.1
    assert not in_units(1e-3, 1.0).is_integer()
    assert not in_units(1e308, 1e-300).is_integer()  # infinite


def test_rounding_is_relative_for_many_units() -> None:
    assert in_units(1e6 * 0.1, 0.1 * (1 + 1e-12)) == 1_000_000
    assert in_units(1 / 3 + 1e-8, 1 / 3, rounding=1e-6) == 1
    assert math.floor(in_units(2.99, 1.0, rounding=1e-6)) == 2
