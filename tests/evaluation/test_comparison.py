"""Forecasters side by side, and the rules that any model must beat."""

import io

import numpy as np
import pytest

from ssno.base.terminal import Console
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.evaluation.evaluate import as_table, compare, trivial_forecasters


def straight(*, context: bool = False) -> Trajectories:
    """Fields that grow by 1 per frame from 1 on, and a known companion if asked."""
    values = np.ones((2, 1, 1, 8)) * np.arange(1, 7)[:, None, None]
    channels = [values, np.random.default_rng(0).normal(size=(2, 6, 1, 8))] if context else [values]
    return Trajectories.from_array(
        np.concatenate(channels, axis=2).astype(np.float32),
        name="straight",
        fields=["u", "known"][: len(channels)],
        context_fields=["known"] if context else [],
    )


@pytest.mark.parametrize("context", [False, True])
def test_a_straight_line_is_forecast_by_linear_extrapolation(context) -> None:
    data = straight(context=context)
    linear, persistence = compare(trivial_forecasters(data, Window(size=2)), data)
    assert (linear.name, persistence.name) == ("linear", "persistence")  # best first
    assert linear.scores.means["rel_l2"] < 1e-6
    truth, known = np.arange(3, 7), 2  # frames 3 ... 6, the last given one is 2
    expected = np.sqrt(((truth - known) ** 2).sum() / (truth**2).sum())
    assert persistence.scores.means["rel_l2"] == pytest.approx(expected, rel=1e-5)


def test_the_table_compares_with_the_best() -> None:
    data = straight()
    rows = compare(trivial_forecasters(data, Window(size=1)), data)
    console = Console(width=120, file=io.StringIO())
    console.print(as_table(rows, title="a contest"))
    text = console.file.getvalue()
    ratio = rows[1].scores.means["rel_l2"] / rows[0].scores.means["rel_l2"]
    assert "a contest" in text
    assert "error, best = 1" in text
    assert f"{ratio:.1f}" in text
