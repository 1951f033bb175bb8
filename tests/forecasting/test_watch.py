"""When a forecast leaves the range of the training data, and when it diverges, step by step, without the truth."""

import math
from itertools import islice

import numpy as np
import pytest
import torch

from ssno.base.memory import peak_memory
from ssno.data.envelope import Surveyor
from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.divergence import INPUT, Departure, Divergence, ForecastWatch, first_departures, horizon_words
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout, stream
from ssno.forecasting.scores import EVERY, score
from ssno.pde.geometry import POINT_CLOUD, SPHERE, Axis
from ssno.runs.open import open_run

X = np.arange(64) / 64


def vortices(count: int = 8, frames: int = 6) -> Trajectories:
    """Waves of k = 1 to 3 that travel, of mean zero, with amplitudes about one."""
    rng = np.random.default_rng(0)
    phases = rng.uniform(0, 2 * np.pi, (count, 1, 3, 1)) + np.arange(frames)[:, None, None]
    state = np.cos(2 * np.pi * np.arange(1, 4)[:, None] * X + phases).sum(2)
    return Trajectories.from_array(state[:, :, None].astype(np.float32), lengths=[1.0], dt=1.0)


class Add(torch.nn.Module):
    """Adds a wave, or a constant, in every step."""

    def __init__(self, what: np.ndarray):
        super().__init__()
        self.register_buffer("what", torch.from_numpy(what).float(), persistent=False)

    def forward(self, frames, *, spacing=None):
        return frames + self.what


def forecaster_for(data: Trajectories, model: torch.nn.Module, *, recorded: bool = True) -> Forecaster:
    surveyor = Surveyor(data)
    normalisers = fit(data, "none" if recorded else "zscore", look=surveyor.look_at)
    envelope = surveyor.envelope if recorded else None
    return Forecaster(model, normalisers=normalisers, window=Window(size=1), envelope=envelope)


def watched(model: torch.nn.Module, steps: int = 40, **options) -> ForecastWatch:
    data = vortices()
    forecaster = forecaster_for(data, model, **options)
    given = data.read(slice(None)).state[:, -1:]
    watch = ForecastWatch(forecaster, given, axes=data.axes)
    rollout(forecaster, given, steps, watch=watch.look_at)
    return watch


def test_a_forecast_like_the_training_data_says_nothing() -> None:
    watch = watched(Add(np.zeros(64)))
    assert (watch.departures(), watch.divergences(), watch.good_steps, watch.diverged) == ((), (), 40, False)


@pytest.mark.parametrize("recorded", [True, False])
def test_small_scales_that_grow_are_named_with_their_band_and_the_step(recorded) -> None:
    watch = watched(Add(0.05 * np.cos(2 * np.pi * 24 * X)), recorded=recorded)
    (found, *_) = watch.departures()
    assert (found.field, found.what, found.trajectories) == ("u", "the energy at k >= 16", 8)
    limit = float(watch.limits[1][found.trajectory, 0, -1])  # energy grows with the square of the step
    assert found.value > limit >= found.value * (found.step / (found.step + 1)) ** 2
    assert 3 <= found.step <= 30
    known = "the range of the training data" if recorded else "the expected range"
    assert found.words(recorded=watch.recorded).startswith(f"u: the energy at k >= 16 leaves {known} at step ")


def test_a_mean_that_drifts_is_named_where_training_conserved_it() -> None:
    (found, *_) = watched(Add(np.full(64, 0.01))).departures()
    assert (found.what, found.step) == ("the conserved mean", math.ceil(0.05 * 1.5**0.5 / 0.01) - 1 + found.step % 1)


def test_values_beyond_the_range_and_a_field_that_fades_are_named() -> None:
    class Times(torch.nn.Module):
        def __init__(self, factor: float):
            super().__init__()
            self.factor = factor

        def forward(self, frames, *, spacing=None):
            return self.factor * frames

    names = {found.what for found in watched(Times(1.05)).departures()}
    assert {"the smallest value", "the largest value", "the energy at k < 2"} <= names
    (faded, *_) = watched(Times(0.9)).departures()
    assert faded.value < faded.low
    assert faded.what.startswith("the energy at")


def test_given_frames_may_be_beyond_already() -> None:
    data = vortices()
    forecaster = forecaster_for(data, Add(np.zeros(64)))
    watch = ForecastWatch(forecaster, 9 * data.read([0]).state[:, -1:], axes=data.axes)
    assert {found.step for found in watch.departures()} == {INPUT}
    assert "in the input frames (trajectory 7)" in watch.departures(first_trajectory=7)[0].words()


def test_a_trajectory_counts_once_per_reason_and_frames_after_the_end_say_nothing_new() -> None:
    data = vortices()
    watch = ForecastWatch(forecaster_for(data, Add(X)), torch.ones(2, 1, 1, 64), axes=data.axes)
    for size in (1.0, 1e3, 1e4, math.nan, math.inf, 1.0):
        watch.look_at(torch.tensor([1.0, size])[:, None, None].expand(2, 1, 64))
    assert watch.divergences(first_trajectory=10) == (Divergence(11, 1, "too large"), Divergence(11, 3, "not finite"))
    assert watch.good_steps == 1
    assert all(math.isfinite(found.value) for found in watch.departures())
    before = watch.departures()
    for _ in range(40):
        watch.look_at(torch.full((2, 1, 64), math.nan))
    watch.settle()
    assert watch.departures() == before


def test_a_rollout_ends_soon_after_divergence_if_asked_to() -> None:
    data = vortices()
    forecaster = forecaster_for(data, Add(np.full(64, 1.0)))
    given = data.read(slice(None)).state[:, -1:]
    watch = ForecastWatch(forecaster, given, axes=data.axes, on_divergence="stop")
    frames = rollout(forecaster, given, 1000, watch=watch.look_at)
    assert watch.good_steps <= frames.shape[1] < watch.good_steps + 16
    assert watch.good_steps in (26, 27, 28, 29, 30)  # ten times about 3


def test_masked_points_do_not_count() -> None:
    state = np.random.default_rng(0).normal(size=(4, 6, 1, 16)).astype(np.float32) + 50
    state[..., 5] = np.nan
    data = Trajectories.from_array(state, lengths=[1.0]).masked("nan")
    surveyor = Surveyor(data)
    normalisers = fit(data, "zscore", look=surveyor.look_at)
    assert surveyor.envelope is not None
    assert surveyor.envelope.low[0] > 40

    class Keep(torch.nn.Module):
        def forward(self, frames, *, spacing=None):
            return frames[:, :, :1]

    window = Window(size=1)
    forecaster = Forecaster(Keep(), normalisers=normalisers, window=window, mask="mask", envelope=surveyor.envelope)
    frames, context = data.read(slice(None))
    watch = ForecastWatch(forecaster, frames[:, :1], axes=data.axes, context=context)
    rollout(forecaster, frames[:, :1], 5, context=context, watch=watch.look_at)
    assert watch.departures() == ()


def test_a_sphere_and_a_cloud_are_watched_too() -> None:
    for geometry, axes in (
        (SPHERE, (Axis("colatitude", np.pi * 8 / 7, 8, periodic=False), Axis("longitude", 2 * np.pi, 16))),
        (POINT_CLOUD, (Axis("point", 128.0, 128),)),
    ):
        shape = [axis.points for axis in axes]
        state = np.random.default_rng(0).normal(size=(4, 3, 1, *shape)).astype(np.float32)
        data = Trajectories.from_array(state, lengths=[axis.length for axis in axes])
        forecaster = forecaster_for(data, Add(np.ones(shape)))
        given = data.read(slice(None)).state[:, -1:]
        watch = ForecastWatch(forecaster, given, axes=axes, geometry=geometry)
        rollout(forecaster, given, 20, watch=watch.look_at)
        assert {"the mean", "the largest value"} <= {found.what for found in watch.departures()}, geometry


def test_memory_does_not_grow_while_watching() -> None:
    data = vortices()
    forecaster = forecaster_for(data, Add(np.zeros(64)))
    given = data.read(slice(None)).state[:, -1:]

    def peak(steps: int) -> int:
        def watch_all() -> None:
            watch = ForecastWatch(forecaster, given, axes=data.axes)
            for frame in islice(stream(forecaster, given), steps):
                watch.look_at(frame)

        return peak_memory(watch_all)

    assert peak(300) == peak(60)


def test_departures_of_batches_are_told_once_with_the_earliest() -> None:
    one, two = (Departure("u", "the mean", 2, n, step, 1.0, 0.0, 0.5) for n, step in ((3, 7), (9, 4)))
    other = Departure("v", "the mean", 1, 0, 5, 1.0, 0.0, 0.5)
    assert first_departures([one, other, two]) == (Departure("u", "the mean", 4, 9, 4, 1.0, 0.0, 0.5), other)


def test_a_horizon_is_told_only_beyond_that_of_training() -> None:
    assert horizon_words(22, 2200) == "trained on forecasts of 22 steps, you ask for 2,200"
    assert horizon_words(22, 22) is None
    assert horizon_words(None, 22) is None


def test_scores_say_when_forecasts_leave_the_training_data() -> None:
    data = vortices(frames=20)
    forecaster = forecaster_for(data, Add(0.05 * np.cos(2 * np.pi * 24 * X)))
    assert forecaster.trained_steps == 19
    scores = score(forecaster, data, metrics=EVERY, batch_size=3)
    assert scores.departures[0].what == "the energy at k >= 16"
    assert scores.departures[0].trajectories == 8
    assert score(forecaster, data).departures == ()


@pytest.mark.parametrize("recorded", [True, False])
def test_a_bundled_flow_is_told_when_noise_is_put_into_its_small_scales(recorded) -> None:
    """Bundled checkpoints, whether they have a record or not, notice enstrophy at small scales that grows."""
    forecaster = open_run("torus-li-64", device="cpu").forecaster
    if not recorded:
        forecaster.envelope = None
    elif forecaster.envelope is None:
        return
    x = 2 * np.pi * np.arange(64) / 64
    given = torch.from_numpy(np.sin(x)[:, None] * np.cos(2 * x))[None, None, None].float()
    watch = ForecastWatch(forecaster, given, axes=(Axis("x", 1.0, 64), Axis("y", 1.0, 64)))
    checkers = torch.from_numpy(np.cos(24 * x)[:, None] * np.cos(24 * x)).float()
    for step in range(100):
        watch.look_at(given[:, 0] + 0.02 * step * checkers)
    assert watch.departures()[0].what == "the energy at k >= 16"
