"""Amounts in words."""

import pytest

from ssno.base import byte_size, cost_rows, cost_words, duration


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0042, "4 ms"), (1.0, "1.0 s"), (119.0, "119.0 s"), (600.0, "10 min"), (9e3, "2.5 h")]
)
def test_durations_have_the_unit_that_suits_them(seconds, words) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(12, "12 bytes"), (1000, "0.977 KiB"), (2**20, "1 MiB"), (2**33, "8 GiB"), (2**50, "1.05e+06 GiB")],
)
def test_sizes_have_the_unit_that_suits_them(count, words) -> None:
    assert byte_size(count) == words


def test_costs_are_told_in_one_order() -> None:
    assert cost_rows(60.0, 2**30, 2**20) == [("time", "60.0 s"), ("memory", "1 GiB"), ("disk", "1 MiB")]
    assert cost_words(60.0, 2**30, 2**20) == "about 60.0 s, 1 GiB of memory, 1 MiB on disk"
