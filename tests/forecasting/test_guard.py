"""A guard keeps a forecast within the energies of the training data, changes nothing else, and says what it did."""

import h5py
import numpy as np
import pytest
import torch
from tests.forecasting.test_watch import Add, X, forecaster_for, vortices

from ssno.data.envelope import MEAN
from ssno.data.trajectories import Trajectories
from ssno.forecasting.divergence import EnergyGuard, ForecastWatch, guard_words
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.predict import predict
from ssno.forecasting.rollout import rollout
from ssno.pde.geometry import SPHERE, Axis

GROWING = 0.5 * np.cos(2 * np.pi * 24 * X) + 0.02


def guarded(what: np.ndarray) -> tuple[Forecaster, Trajectories, torch.Tensor, EnergyGuard]:
    data = vortices()
    forecaster = forecaster_for(data, Add(what))
    given = data.read(slice(None)).state[:, -1:]
    return forecaster, data, given, EnergyGuard(forecaster, given, axes=data.axes)


def test_a_forecast_that_would_diverge_stays_within_the_energies_of_training() -> None:
    forecaster, data, given, guard = guarded(GROWING)
    free = ForecastWatch(forecaster, given, axes=data.axes)
    rollout(forecaster, given, 300, watch=free.look_at)
    assert free.diverged
    watch = ForecastWatch(forecaster, given, axes=data.axes)
    forecast = rollout(forecaster, given, 300, watch=watch.look_at, guard=guard)
    assert not watch.diverged
    assert not [one for one in watch.departures() if "energy" in one.what or "mean" in one.what]
    assert guard.gauge(forecast)[..., MEAN].abs().max() <= guard.means[1].max() + 1e-5
    assert (guard.steps, guard.limited) == (300, 8 * (301 - guard.first))
    assert 0 < guard.first < 10


def test_only_the_band_that_is_too_large_changes_and_keeps_its_phases() -> None:
    _, _, given, guard = guarded(np.zeros(64))
    frame = given[:, -1].clone()
    frame[3] += torch.from_numpy(5 * np.cos(2 * np.pi * 24 * X + 0.3)).float()
    kept = guard(frame)
    others = [row for row in range(8) if row != 3]
    assert torch.equal(kept[others], frame[others])
    before, after = (torch.fft.rfft(one[3, 0].double()) for one in (frame, kept))
    torch.testing.assert_close(after[:16], before[:16], rtol=0, atol=1e-4)
    ratio = after[24] / before[24]
    assert 0 < ratio.real < 0.5
    assert abs(ratio.imag) < 1e-6
    assert (guard.limited, guard.first) == (1, 1)


def test_what_lies_within_the_limits_is_not_touched_and_nothing_is_said() -> None:
    forecaster, _, given, guard = guarded(np.zeros(64))
    assert torch.equal(rollout(forecaster, given, 5, guard=guard), rollout(forecaster, given, 5))
    assert (guard.limited, guard.first) == (0, 0)
    gone = torch.full((8, 1, 64), torch.nan)
    assert guard(gone) is gone  # nothing to limit: the watch says that it diverged


def test_a_guard_refuses_what_it_cannot_limit(as_users_call_it) -> None:
    data = vortices()
    given = data.read(slice(None)).state[:, -1:]
    with pytest.raises(ValueError, match="`guard` needs the energies of the training data, which this model does not"):
        EnergyGuard(forecaster_for(data, Add(X), recorded=False), given, axes=data.axes)
    forecaster = forecaster_for(data, Add(X))
    for axes, geometry in (([Axis("x", 1.0, 64, periodic=False)], {}), (data.axes, {"geometry": SPHERE})):
        with pytest.raises(ValueError, match="`guard` needs periodic, unmasked data on a Cartesian grid"):
            EnergyGuard(forecaster, given, axes=axes, **geometry)
    forecaster.working_grid = lambda grid, *, spacing: (128,)
    with pytest.raises(
        ValueError, match=r"`guard` needs a forecast on the grid of its input, .* \(64,\) points on \(128,\)"
    ):
        rollout(forecaster, given, 2, spacing=data.spacing, guard=lambda frame: frame)


def test_a_prediction_says_in_the_file_and_in_numbers_what_the_guard_did(tmp_path) -> None:
    forecaster, data, *_ = guarded(GROWING)
    done = predict(forecaster, data, tmp_path / "out.h5", steps=50, batch_size=3, guard=True)
    assert (done.steps, done.divergences) == (50, ())
    assert done.limited == 8 * (51 - done.limited_first)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file.attrs["guard"] == guard_words(done.limited, done.limited_first)
    assert (
        guard_words(1, 7)
        == "! guard: 1 predicted frame was limited to the energies of the training data, the first at step 7"
    )
    plain = predict(forecaster, data, tmp_path / "plain.h5", steps=5)
    assert (plain.limited, plain.limited_first) == (0, 0)
