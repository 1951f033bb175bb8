"""The benchmark of cubes runs, and its exponents are about points."""

import pytest
from benchmarks.cubes import exponents, measure


def test_a_small_cube_is_measured() -> None:
    row = measure("ffno", 8, 1)
    assert (row["model"], row["points"]) == ("ffno", 8)
    assert row["seconds"] > 0
    assert abs(row["bytes"]) < 2**27  # pages are counted with delay, and earlier tests' are given back


def test_what_grows_with_the_points_has_exponent_one() -> None:
    rows = [{"model": "ssno", "points": n, "bytes": 5 * n**3, "seconds": n**4} for n in (8, 16)]
    memory, seconds = exponents(rows)
    assert memory["exponent"] == pytest.approx(1)
    assert seconds["exponent"] == pytest.approx(4 / 3)
    assert (memory["what"], memory["between"]) == ("bytes", "8^3 to 16^3")
