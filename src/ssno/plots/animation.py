"""Moving pictures of a forecast beside its truth: GIF everywhere, MP4 where ffmpeg is installed.

One dimension: two lines. Two: truth, forecast and difference. Three: the middle plane of the last axis.

Axes: s predicted frame, then the grid.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ssno.plots.gallery import colours
from ssno.plots.style import DIFFERENCE_MAP, ink, look, palette

WRITERS = {".gif": PillowWriter, ".mp4": FFMpegWriter}
Update = Callable[[int], None]


def animate(
    truth: Float[np.ndarray, "s *grid"],
    forecast: Float[np.ndarray, "s *grid"],
    path: str | Path,
    *,
    times: Sequence[float],
    lengths: Sequence[float],
    field: str = "u",
    frames_per_second: float = 8.0,
) -> Path:
    """Write an animation; the ending of the name decides the format, .gif or .mp4. It appears when it is whole."""
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ValueError(f"`path` must end in {' or '.join(WRITERS)}, got {path.name!r}.")
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise ValueError(f"Writing {path.name} needs ffmpeg, which is not installed. Choose a name that ends in .gif.")
    if truth.ndim == 4:
        middle = truth.shape[-1] // 2
        truth, forecast = truth[..., middle], forecast[..., middle]
    path.parent.mkdir(parents=True, exist_ok=True)
    with look(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draw = _lines if truth.ndim == 2 else _images
        figure, update = draw(truth, forecast, times, lengths, field)
        FigureCanvasAgg(figure)
        writer = WRITERS[path.suffix](fps=frames_per_second)
        partial = Path(folder) / path.name
        with writer.saving(figure, str(partial), dpi=80):
            for frame in range(len(times)):
                update(frame)
                writer.grab_frame()
        partial.replace(path)
    return path


def moving_suffix() -> str:
    """The best format there is: .mp4 with ffmpeg, else .gif."""
    return ".gif" if shutil.which("ffmpeg") is None else ".mp4"


def _lines(
    truth: np.ndarray, forecast: np.ndarray, times: Sequence[float], lengths: Sequence[float], field: str
) -> tuple[Figure, Update]:
    positions = float(lengths[0]) * np.arange(truth.shape[1]) / truth.shape[1]
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    (true,) = axes.plot(positions, truth[0], color=ink(), linewidth=1.2, label="truth")
    (made,) = axes.plot(positions, forecast[0], color=palette()[1], label="forecast")
    margin = 0.08 * float(np.ptp(truth)) or 1.0
    axes.set(xlabel="x", ylabel=field, ylim=(float(truth.min()) - margin, float(truth.max()) + margin))
    axes.legend(loc="upper right", fontsize=8)
    title = axes.set_title("")

    def update(frame: int) -> None:
        true.set_ydata(truth[frame])
        made.set_ydata(forecast[frame])
        title.set_text(f"t = {times[frame]:.3g}")

    return figure, update


def _images(
    truth: np.ndarray, forecast: np.ndarray, times: Sequence[float], lengths: Sequence[float], field: str
) -> tuple[Figure, Update]:
    difference = forecast - truth
    limit = max(float(np.abs(difference[np.isfinite(difference)]).max(initial=0.0)), 1e-12)
    panels = [("truth", truth, colours(truth)), ("forecast", forecast, colours(truth))]
    panels.append(("forecast - truth", difference, (DIFFERENCE_MAP, -limit, limit)))
    figure = Figure(figsize=(8.4, 2.9))
    extent = (0.0, float(lengths[0]), 0.0, float(lengths[1]))
    images = []
    for axes, (name, values, (colour_map, low, high)) in zip(figure.subplots(1, 3), panels, strict=True):
        axes.grid(False)
        image = axes.imshow(
            values[0].T[::-1], extent=extent, cmap=colour_map, vmin=low, vmax=high, interpolation="nearest"
        )
        images.append((image, values))
        axes.set(title=name, xticks=[], yticks=[])
        figure.colorbar(image, ax=axes, shrink=0.8)
    title = figure.suptitle("")

    def update(frame: int) -> None:
        for image, values in images:
            image.set_data(values[frame].T[::-1])
        title.set_text(f"{field}, t = {times[frame]:.3g}")

    return figure, update
