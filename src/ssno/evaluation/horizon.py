"""Forecasts far beyond the horizon of training: do they live, and do they look like the solver's own frames?

After the valid time of a chaotic flow no forecast follows the truth. What can be asked of it is that it stays bounded
and has the same statistics: standard deviation, spectrum, distribution of values.
"""

from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.data.trajectories import Trajectories
from ssno.forecasting.divergence import NEVER, EnergyGuard, divergence_step, largest_values
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import energy_spectrum, valid_time
from ssno.forecasting.rollout import rollout

QUANTILES = 99
"""Of the values of a field: 1 %, 2 %, ... 99 %."""
MOST_VALUES = 1_000_000
"""Values from which quantiles are taken, evenly spread."""


@dataclass(frozen=True)
class LongForecast:
    """Forecasts of `steps` steps, beside data. Statistics are of those that do not diverge; NaN if all do."""

    steps: int
    trajectories: int
    diverged: int
    """Forecasts that are not finite or ten times larger than the data at some step."""
    first_step: int
    """The first step at which one of them diverges, counted from 1; 0 if none does."""
    valid_time: float
    """Mean time until the error of a frame exceeds its threshold, at most the length of the data."""
    spread: float
    """Standard deviation / that of the data."""
    spectrum: float
    """Mean over wavenumbers of |ln(energy / energy of the data)|."""
    distribution: float
    """Mean distance of the quantiles of values from those of the data / standard deviation of the data."""

    def values(self) -> dict[str, float]:
        """All numbers by name, as `long/diverged`."""
        return {f"long/{name}": float(value) for name, value in asdict(self).items()}


@torch.no_grad()
def long_forecasts(forecaster: Forecaster, data: Trajectories, *, steps: int, guard: bool = False) -> LongForecast:
    """Forecast `steps` steps from the first frames of all trajectories, if asked with an `EnergyGuard`.

    Statistics are over all fields, points and trajectories, and over the second half of the forecasts where the data go
    as far. Otherwise the data are taken to be stationary, and all of their frames are compared with all of the
    forecasts', or, where these are more than twice as long, with what comes after the data's length.
    """
    read = data.read(range(len(data)))
    frames = read.state
    inputs = forecaster.window.frames_seen
    truth, times = frames[:, inputs:], torch.as_tensor(data.times[inputs:] - data.times[inputs - 1])
    context = read.context
    if context.shape[1] < inputs + steps and bool((context == context[:, :1]).all()):
        context = context[:, :1].expand(-1, inputs + steps, *context.shape[2:])
    first = frames[:, :inputs]
    limits = EnergyGuard(forecaster, first, axes=data.axes, geometry=data.geometry) if guard else None
    forecast = rollout(forecaster, first, steps, context=context, spacing=data.spacing, guard=limits)
    usual = largest_values(frames).amax(0, keepdim=True).expand(len(frames), -1)
    when = divergence_step(forecast, usual)
    alive = when == NEVER
    known = min(steps, truth.shape[1])
    until = valid_time(forecast[:, :known], truth[:, :known], times[:known]).clamp_max(float(times[known - 1]))
    if known == steps:
        late, compared = forecast[alive, steps // 2 :], truth[:, steps // 2 : steps]
    else:
        late, compared = forecast[alive, truth.shape[1] if steps > 2 * truth.shape[1] else 0 :], frames
    return LongForecast(
        steps=steps,
        trajectories=len(frames),
        diverged=int((~alive).sum()),
        first_step=0 if alive.all() else int(when[~alive].min()) + 1,
        valid_time=until.mean().item(),
        **_statistics(late, compared, spacing=data.spacing),
    )


def _statistics(late: Tensor, compared: Tensor, *, spacing: tuple[float, ...]) -> dict[str, float]:
    """How the frames of forecasts differ from those of the data."""
    if not len(late):
        return dict.fromkeys(("spread", "spectrum", "distribution"), float("nan"))
    ours, theirs = (energy_spectrum(f, spacing=spacing)[1].mean((0, 1, 2))[1:] for f in (late, compared))
    deviation = compared.double().std(correction=0)
    return {
        "spread": (late.double().std(correction=0) / deviation).item(),
        "spectrum": (ours / theirs).log().abs().mean().item(),
        "distribution": ((_quantiles(late) - _quantiles(compared)).abs().mean() / deviation).item(),
    }


def _quantiles(frames: Tensor) -> Float[Tensor, " q"]:
    values = frames.flatten()
    chosen = values[:: -(-len(values) // MOST_VALUES)].double()
    return torch.quantile(chosen, torch.arange(1, QUANTILES + 1, dtype=torch.float64) / (QUANTILES + 1))
