"""Moving pictures of data, or of a forecast beside its truth: GIF everywhere, MP4 where ffmpeg is installed.

One dimension: lines. Two: truth, forecast and difference. Three: the middle plane of the last axis. Points that are not
finite are grey.

Axes: s predicted frame, then the grid.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from ssno.base import unknown_name
from ssno.plots.gallery import colours
from ssno.plots.style import DIFFERENCE_MAP, NO_DATA, Figure, ink, look, palette

Update = Callable[[int], None]


class GifWriter(PillowWriter):
    """GIF whose 256 colours cover all that occur: by count alone, rare ones, such as the ends of colour bars, go."""

    _frames: list[Image.Image]

    def finish(self) -> None:
        """Choose colours, then write."""
        self._frames = [
            frame.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            for frame in self._frames
        ]
        super().finish()


WRITERS = {".gif": GifWriter, ".mp4": FFMpegWriter}


class Shown(NamedTuple):
    """What a moving picture is made of."""

    truth: np.ndarray
    forecast: np.ndarray | None
    times: Sequence[float]
    lengths: Sequence[float]
    field: str
    colour_map: str | None


@dataclass(frozen=True)
class AnimationOptions:
    """How an animation looks."""

    width: int = 1080
    """Pixels from left to right."""
    fps: float = 8.0
    """Frames per second."""
    format: Literal["auto", "gif", "mp4"] = "auto"
    """auto: mp4 if ffmpeg is installed, else gif."""
    colour_map: str | None = None
    """A colour map of matplotlib's for the fields; by default one that suits their sign."""

    def __post_init__(self) -> None:
        if not 100 <= self.width <= 7680:
            raise ValueError(f"`width` must lie between 100 and 7680 pixels, got {self.width}.")
        if not 0 < self.fps <= 120:
            raise ValueError(f"`fps` must lie between 0 and 120 frames per second, got {self.fps}.")
        if self.colour_map is not None and self.colour_map not in colormaps:
            raise ValueError(unknown_name(self.colour_map, list(colormaps), kind="colour map"))

    @property
    def suffix(self) -> str:
        """The ending of a file's name."""
        return moving_suffix() if self.format == "auto" else f".{self.format}"


DEFAULTS = AnimationOptions()


def animate(
    truth: Float[np.ndarray, "s *grid"],
    forecast: Float[np.ndarray, "s *grid"] | None,
    path: str | Path,
    *,
    times: Sequence[float],
    lengths: Sequence[float],
    field: str = "u",
    options: AnimationOptions = DEFAULTS,
) -> Path:
    """Write an animation, of data alone if there is no forecast. It appears when it is whole.

    The ending of the name decides the format, .gif or .mp4.
    """
    path = Path(path)
    if path.suffix not in WRITERS:
        raise ValueError(f"`path` must end in {' or '.join(WRITERS)}, got {path.name!r}.")
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise ValueError(f"Writing {path.name} needs ffmpeg, which is not installed. Choose a name that ends in .gif.")
    if truth.ndim == 4:
        middle = truth.shape[-1] // 2
        truth, forecast = truth[..., middle], None if forecast is None else forecast[..., middle]
    path.parent.mkdir(parents=True, exist_ok=True)
    with look(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draw = _lines if truth.ndim == 2 else _images
        figure, update = draw(Shown(truth, forecast, times, lengths, field, options.colour_map))
        FigureCanvasAgg(figure)
        even = 2 * round(options.width / 2)  # ffmpeg wants even numbers of pixels
        inches = figure.get_size_inches()
        figure.set_size_inches(inches[0], 2 * round(even * inches[1] / inches[0] / 2) * inches[0] / even)
        writer = WRITERS[path.suffix](fps=options.fps)
        partial = Path(folder) / path.name
        with writer.saving(figure, str(partial), dpi=even / inches[0]):
            for frame in range(len(times)):
                update(frame)
                writer.grab_frame()
        partial.replace(path)
    return path


def moving_suffix() -> str:
    """The best format there is: .mp4 with ffmpeg, else .gif."""
    return ".gif" if shutil.which("ffmpeg") is None else ".mp4"


def _lines(shown: Shown) -> tuple[Figure, Update]:
    truth, forecast, times, lengths, field, _ = shown
    positions = float(lengths[0]) * np.arange(truth.shape[1]) / truth.shape[1]
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    (true,) = axes.plot(positions, truth[0], color=ink(), linewidth=1.2, label="truth")
    made = None
    if forecast is not None:
        (made,) = axes.plot(positions, forecast[0], color=palette()[1], label="forecast")
        axes.legend(loc="upper right", fontsize=8)
    finite = truth[np.isfinite(truth)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    margin = 0.08 * (high - low) or 1.0
    axes.set(xlabel="x", ylabel=field, ylim=(low - margin, high + margin))
    title = axes.set_title("")

    def update(frame: int) -> None:
        true.set_ydata(truth[frame])
        if made is not None and forecast is not None:
            made.set_ydata(forecast[frame])
        title.set_text(f"t = {times[frame]:.3g}")

    return figure, update


def _images(shown: Shown) -> tuple[Figure, Update]:
    truth, forecast, times, lengths, field, colour_map = shown
    usual, low, high = colours(truth)
    looks = (colour_map or usual, low, high)
    panels = [("", truth, looks)]
    if forecast is not None:
        difference = forecast - truth
        limit = max(float(np.abs(difference[np.isfinite(difference)]).max(initial=0.0)), 1e-12)
        panels = [("truth", truth, looks), ("forecast", forecast, looks)]
        panels.append(("forecast - truth", difference, (DIFFERENCE_MAP, -limit, limit)))
    wide = float(np.clip(lengths[0] / lengths[1], 0.5, 3.0))
    figure = Figure(figsize=(2.8 * len(panels) if forecast is not None else 2.6 * wide + 1.2, 2.9))
    extent = (0.0, float(lengths[0]), 0.0, float(lengths[1]))
    images = []
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (name, values, (colouring, bottom, top)) in zip(grid, panels, strict=True):
        axes.grid(False)
        axes.set_facecolor(NO_DATA)
        image = axes.imshow(
            values[0].T[::-1], extent=extent, cmap=colouring, vmin=bottom, vmax=top, interpolation="nearest"
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
