"""The picture, and the moving picture, that suit the geometry of some data: lines, planes, or maps of a sphere.

Axes: t frame, s predicted frame, then the grid.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from ssno.data.trajectories import Trajectories
from ssno.plots.animation import DEFAULTS, AnimationOptions, animate
from ssno.plots.fields import forecast_panels, frame_panels
from ssno.plots.globe import sphere_panels
from ssno.plots.style import Figure, Labels


def still_picture(
    data: Trajectories,
    truth: Float[np.ndarray, "t *grid"],
    forecast: Float[np.ndarray, "s *grid"],
    *,
    times: Sequence[float],
    labels: Labels,
) -> Figure:
    """A forecast of the last frames beside the truth. In one dimension the input frames are drawn too."""
    lengths = [axis.length for axis in data.axes]
    if len(lengths) == 1:
        return forecast_panels(truth, forecast, times=times, length=lengths[0], labels=labels)
    truth, times = truth[-len(forecast) :], times[-len(forecast) :]
    if data.geometry.drawing == "map":
        return sphere_panels(truth, forecast, times=times, labels=labels)
    if len(lengths) == 3:
        middle = truth.shape[-1] // 2
        truth, forecast = truth[..., middle], forecast[..., middle]
    return frame_panels(truth, forecast, times=times, lengths=lengths, labels=labels)


def moving_picture(
    data: Trajectories,
    truth: Float[np.ndarray, "s *grid"],
    forecast: Float[np.ndarray, "s *grid"] | None,
    path: Path,
    *,
    times: Sequence[float],
    labels: Labels,
    errors: Sequence[float] | None = None,
    options: AnimationOptions = DEFAULTS,
) -> Path:
    """Frames of data, or of a forecast beside its truth; a sphere as a map, north up."""
    lengths, starts = [axis.length for axis in data.axes], None
    if data.geometry.drawing == "map":
        lengths, starts = [360.0, 180.0], [0.0, -90.0]
        truth = truth[:, ::-1].swapaxes(1, 2)
        forecast = None if forecast is None else forecast[:, ::-1].swapaxes(1, 2)
    settings = {"times": times, "lengths": lengths, "starts": starts, "errors": errors, "labels": labels}
    return animate(truth, forecast, path, options=options, **settings)  # type: ignore[arg-type]
