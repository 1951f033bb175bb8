"""Sums of sine waves as initial conditions."""

import numpy as np

from ssno.pde.initial_conditions import draw_waves, sine_waves


def test_waves_are_added_on_the_grid_spanned_by_the_axes() -> None:
    x, y = np.array([0.0, 0.1, 0.7]), np.array([0.2, 1.5])
    field = sine_waves(
        [x, y],
        [1.0, 2.0],
        amplitude=np.array([2.0, -0.5]),
        wavenumber=np.array([[1, 0], [2, -3]]),
        phase=np.array([0.3, 1.0]),
    )
    tau = 2 * np.pi
    expected = [[2 * np.sin(tau * a + 0.3) - 0.5 * np.sin(tau * (2 * a - 1.5 * b) + 1) for b in y] for a in x]
    np.testing.assert_allclose(field, expected, atol=1e-15)


def test_drawn_waves_fill_their_ranges_without_the_upper_end() -> None:
    drawn = draw_waves(np.random.default_rng(0), waves=20_000, low=1, high=9, dimensions=1)
    assert set(drawn["wavenumber"].ravel()) == set(range(1, 9))
    for values, low, high in [(drawn["amplitude"], -0.5, 0.5), (drawn["phase"], 0, 2 * np.pi)]:
        assert low <= values.min() < low + 1e-3 * (high - low)
        assert high - 1e-3 * (high - low) < values.max() < high
        assert abs(values.mean() - (low + high) / 2) < 0.01 * (high - low)
        assert abs(values.var() - (high - low) ** 2 / 12) < 0.01 * (high - low) ** 2
