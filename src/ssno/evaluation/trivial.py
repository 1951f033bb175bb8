"""Forecasts that learn no dynamics, and the skill of a model: how far it is below the best of them.

    persistence    u[t+1] = u[t]                    climatology   mean of frame t over the training trajectories
    linear         u[t+1] = 2 u[t] - u[t-1]         mean          mean of all frames of the training trajectories

    skill = 1 - rel_l2 / (rel_l2 of the best trivial forecast)

is 1 for a perfect forecast, and 0 or less for one that a trivial forecast equals or beats. The last two ignore their
input; they need the training data, or what a run stored of them (`ssno.data.envelope`).
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor, nn

from ssno.data.envelope import Climatology
from ssno.data.normalise import Normaliser, Normalisers
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import Scores
from ssno.models.operator import OperatorState, Spacing
from ssno.models.registry import model_config
from ssno.runs.checkpoint import CLIMATOLOGY
from ssno.runs.load import run_folder_of
from ssno.runs.open import RunFolder

RULES = ("persistence", "linear")
TRIVIAL = (*RULES, "climatology", "mean")


class FixedForecast(nn.Module):
    """The same frames for every trajectory; `first` is the frame that forecasts get first."""

    frames: Tensor

    def __init__(self, frames: Tensor, *, first: int = 0):
        super().__init__()
        self.register_buffer("frames", frames, persistent=False)
        self.first = first

    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """The frame after each time step of whole trajectories (b, t, c_in, *grid)."""
        following = self.frames[1 : frames.shape[1] + 1]
        return following.expand(len(frames), *following.shape)

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """The frames that are to come."""
        return OperatorState(self.frames[self.first + first_frames.shape[1] :], spacing)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """The next of them."""
        following = state.buffer[0]
        return following.expand(len(frame), *following.shape), OperatorState(state.buffer[1:], state.spacing)


def trivial_forecasters(
    data: Trajectories, window: Window, *, climatology: Climatology | None = None
) -> dict[str, Forecaster]:
    """Persistence and linear extrapolation of `data`; with a climatology also the two forecasts made of it.

    The climatology itself is left out if `data` are other frames than it has (`without_climatology` says why).
    """
    channels = {
        "in_channels": len(data.fields) + len(data.context_fields),
        "out_channels": len(data.fields),
        "n_dims": len(data.axes),
    }
    models: dict[str, nn.Module] = {name: model_config(name, **channels).build() for name in RULES}
    if climatology is not None and climatology.fits(data):
        first = window.plan(len(data.times)).input_frames.start
        if not without_climatology(data, climatology):
            models["climatology"] = FixedForecast(climatology.at(data), first=first)
        models["mean"] = FixedForecast(climatology.mean_of(data), first=first)
    normalisers = Normalisers(*(Normaliser.identity(names) for names in (data.fields, data.context_fields)))
    return {name: Forecaster(model, normalisers=normalisers, window=window) for name, model in models.items()}


def without_climatology(data: Trajectories, climatology: Climatology | str) -> str:
    """Why `data` have no climatology; empty if they have one."""
    if isinstance(climatology, str):
        return climatology
    try:
        climatology.at(data)
    except ValueError as why:
        return str(why)
    return ""


def climatology_of_run(run: RunFolder, data: Trajectories) -> Climatology | str:
    """The climatology of a run's training data on the grid of `data`: as it was stored, or else made of the data
    again; or why there is none."""
    if data.geometry.is_steady:
        return "points of clouds differ from one trajectory to the next"
    home, stored = run_folder_of(run.folder), None
    if run.folder.name and (home / CLIMATOLOGY).is_file():
        stored = Climatology.read(home / CLIMATOLOGY)
        if stored.fits(data):
            return stored
    if run.data is None:
        return "the run stored none on this grid, and was started from Python without the options of its data"
    try:
        grid = tuple(axis.points for axis in data.axes)
        return Climatology.of(run.load("train", resolution=None if grid == run.grid else grid))
    except (FileNotFoundError, ValueError) as why:
        return f"its training data cannot be read ({str(why).partition('. ')[0].rstrip('.')})"


def best_trivial(baselines: Mapping[str, Scores]) -> tuple[str, float] | None:
    """The trivial forecast with the smallest error among some forecasts, and this error."""
    errors = [(name, baselines[name].means["rel_l2"]) for name in TRIVIAL if name in baselines]
    return min(errors, key=lambda found: found[1], default=None)


def skill(error: float, best: float) -> float:
    """How far an error is below that of the best trivial forecast: 1 is perfect, 0 no better."""
    if not math.isfinite(error):
        return -math.inf
    return 1 - error / best if best else -math.inf if error else 0.0


def with_skill(scores: Scores, baselines: Mapping[str, Scores]) -> Scores:
    """Scores with their skill, if there is a trivial forecast among the baselines."""
    best = best_trivial(baselines)
    if best is None:
        return scores
    found = skill(scores.means["rel_l2"], best[1])
    return replace(scores, means={"rel_l2": scores.means["rel_l2"], "skill": found, **scores.means})
