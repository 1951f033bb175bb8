"""Single forecasts beside their truth, for figures.

Axes: n trajectory, t frame, s predicted frame, c field, then the grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssno.data.trajectories import Trajectories
from ssno.forecasting.divergence import Departure, Divergence, ForecastDiverged, ForecastWatch, OnDivergence
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import frame_errors, with_room
from ssno.forecasting.rollout import rollout


@dataclass(frozen=True)
class Examples:
    """Some trajectories of a dataset: all true frames, the predicted ones, and their times."""

    indices: tuple[int, ...]
    truth: Float[Tensor, "n t c *grid"]
    """From the first input frame to the last predicted one."""
    forecast: Float[Tensor, "n s c *grid"]
    times: tuple[float, ...]
    """Of the true frames; the forecast covers the last s of them."""
    mask: Bool[Tensor, "n t *grid"] | None = None
    """Where the true frames have no data."""
    divergences: tuple[Divergence, ...] = ()
    departures: tuple[Departure, ...] = ()
    recorded: bool = True
    """Departures are from training data; else from the input frames and units."""

    def of(self, indices: Sequence[int]) -> "Examples":
        """Only these of the trajectories, in this order, without their warnings."""
        rows = [self.indices.index(index) for index in indices]
        mask = None if self.mask is None else self.mask[rows]
        return Examples(tuple(indices), self.truth[rows], self.forecast[rows], self.times, mask)

    def drawn(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Truth and forecast of one trajectory for figures: NaN where there are no data."""
        truth, forecast = self.truth[row].numpy(), self.forecast[row].numpy()
        if self.mask is None:
            return truth, forecast
        gaps = self.mask[row, :, None].numpy()
        return np.where(gaps, np.nan, truth), np.where(gaps[self.input_frames :], np.nan, forecast)

    @property
    def input_frames(self) -> int:
        """Number of input frames."""
        return self.truth.shape[1] - self.forecast.shape[1]

    @property
    def predicted_times(self) -> tuple[float, ...]:
        """Times of the predicted frames."""
        return self.times[self.input_frames :]

    @property
    def predicted_truth(self) -> Float[Tensor, "n s c *grid"]:
        """The true frames at the predicted times."""
        return self.truth[:, self.input_frames :]

    def step_errors(self) -> Float[Tensor, "n s"]:
        """Relative l2 error of every predicted frame; infinite where the forecast is not finite."""
        errors = frame_errors(*with_room(self.forecast, self.predicted_truth))
        return torch.where(errors.isfinite(), errors, torch.inf)


def make_examples(
    forecaster: Forecaster, data: Trajectories, indices: Sequence[int], *, on_divergence: OnDivergence = "continue"
) -> Examples:
    """Forecast some trajectories from the forecaster's input frames to the end.

    With "stop" all of them end before the first step at which one diverges; divergences and departures have the indices
    of the data.
    """
    if not indices:
        raise ValueError("`indices` must name at least one trajectory.")
    plan = forecaster.window.plan(len(data.times))
    state, context = data.read(list(indices))
    frames = slice(plan.input_frames.start, plan.predicted.stop)
    known = context[:, frames] if context.shape[2] else None
    first, grid = plan.first(state), {"axes": data.axes, "geometry": data.geometry}
    watch = ForecastWatch(forecaster, first, **grid, context=known, on_divergence=on_divergence)  # type: ignore[arg-type]
    forecast = rollout(forecaster, first, len(plan.predicted), context=known, spacing=data.spacing, watch=watch.look_at)
    divergences = tuple(replace(one, trajectory=indices[one.trajectory]) for one in watch.divergences())
    departures = tuple(replace(one, trajectory=indices[one.trajectory]) for one in watch.departures())
    if watch.stops and watch.diverged:
        forecast = forecast[:, : watch.good_steps]
        frames = slice(frames.start, plan.predicted.start + watch.good_steps)
        if not watch.good_steps:
            raise ForecastDiverged(min(divergences, key=lambda one: one.step))
    mask = None if data.mask_channel is None else context[:, frames, data.mask_channel] > 0
    times = tuple(data.times[frames].tolist())
    return Examples(tuple(indices), state[:, frames], forecast, times, mask, divergences, departures, watch.recorded)
