"""Animations of data, or of a forecast beside its truth: GIF, or MP4 where ffmpeg is installed.

One dimension: lines. Two: truth, forecast and difference. Three: the middle plane of the last axis. A sphere: a map, or
a turning globe. Points that are not finite are grey.

Axes: s predicted frame, then the grid.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.animation import FFMpegWriter
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.text import Text
from PIL import Image

from ssno.base import unknown_name
from ssno.base.formatting import number
from ssno.data.trajectories import Trajectories
from ssno.plots.geometries import draw_globe, seen_from
from ssno.plots.style import (
    MAP_AXES,
    PLAIN,
    Figure,
    Labels,
    colours,
    comparison,
    few_ticks,
    ink,
    look,
    palette,
    show_image,
)

Update = Callable[[int], None]
GREYS = 31  # one of them, 178 or nearly so, is that of missing data
ENDINGS = (".gif", ".mp4")
PALE = "#fdf1e8"  # of an orange line; what is nearer to white is white in a GIF
LETTERS_PER_INCH, STATUS_LETTERS = 13, 24
"""Characters of a title per inch, and those kept free beside it for the time and the error of a frame."""


class MovingFigure:
    """Frames of a figure by blitting: `update` changes the artists `moving`, drawn in this order above all others.

    A GIF has one palette of 256 colours for all frames: those of the colour maps `maps`, and greys.
    """

    def __init__(
        self,
        figure: Figure,
        moving: Sequence[Artist],
        update: Update,
        *,
        frames: int,
        width: int,
        maps: Sequence[Colormap],
    ):
        self.figure, self.moving, self.update, self.frames, self.maps = figure, moving, update, frames, maps
        even = 2 * round(width / 2)  # ffmpeg wants even numbers of pixels
        inches = figure.get_size_inches()
        figure.set_size_inches(inches[0], 2 * round(even * inches[1] / inches[0] / 2) * inches[0] / even)
        figure.set_dpi(even / inches[0])
        self.canvas = FigureCanvasAgg(figure)
        update(0)
        figure.place()  # what moves included
        for artist in moving:
            artist.set_animated(True)
        self.canvas.draw()
        self.still = self.canvas.copy_from_bbox(figure.bbox)

    def frame(self, number: int) -> Image.Image:
        """One frame."""
        self.update(number)
        self.canvas.restore_region(self.still)
        for artist in self.moving:
            artist.draw(self.canvas.get_renderer())
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")

    def write(self, path: Path, *, fps: float) -> None:
        """All frames, as GIF or MP4 by the ending of the name."""
        if path.suffix == ".gif":
            table = self.palette()
            images = (self.frame(n).quantize(palette=table, dither=Image.Dither.NONE) for n in range(self.frames))
            next(images).save(path, save_all=True, append_images=images, duration=int(1000 / fps), loop=0)
            return
        writer = VideoWriter(fps=fps)  # type: ignore[arg-type]  # ffmpeg takes fractions
        try:
            with writer.saving(self.figure, str(path), dpi=self.figure.dpi):
                for number in range(self.frames):
                    self.frame(number)
                    writer.grab_frame()
        except (BrokenPipeError, subprocess.CalledProcessError) as error:
            raise OSError(
                f"ffmpeg could not write {path.name}: perhaps it has no encoder for h264. {INSTEAD}"
            ) from error

    def palette(self) -> Image.Image:
        """An image whose palette has the colours of all frames."""
        each = (256 - GREYS) // len(self.maps)
        parts = [colormaps["gray"](np.linspace(0, 1, GREYS))]
        parts += [colouring(np.linspace(0, 1, each)) for colouring in self.maps]
        table = Image.new("P", (1, 1))
        table.putpalette((255 * np.concatenate(parts)[:, :3]).round().astype(np.uint8).tobytes())
        return table


class VideoWriter(FFMpegWriter):
    """Sends the canvas to ffmpeg without drawing it again."""

    def grab_frame(self, **_: object) -> None:
        """Send the current frame."""
        self._proc.stdin.write(self.fig.canvas.buffer_rgba())  # type: ignore[attr-defined]


class AnimatedFields(NamedTuple):
    """What an animation shows."""

    truth: np.ndarray
    forecast: np.ndarray | None
    times: Sequence[float]
    extents: Sequence[tuple[float, float]]
    errors: Sequence[float] | None
    labels: Labels
    colour_map: str | None

    def status(self, frame: int) -> str:
        """Time and error of one frame."""
        error = "" if self.errors is None else f", error {number(self.errors[frame])}"
        return f"{self.labels.at(self.times[frame])}{error}"


@dataclass(frozen=True)
class AnimationOptions:
    """Size, speed and format of an animation."""

    width: int = 1080
    """Width in pixels."""
    fps: float = 8.0
    """Frames per second."""
    format: Literal["auto", "gif", "mp4"] = "auto"
    """auto: mp4 if ffmpeg is installed, else gif."""
    colour_map: str | None = None
    """Matplotlib colour map of the fields; by default diverging if they change sign, else sequential."""

    def __post_init__(self) -> None:
        if not 100 <= self.width <= 7680:
            raise ValueError(f"`width` must be between 100 and 7680 pixels, got {self.width}.")
        if not 0 < self.fps <= 120:
            raise ValueError(f"`fps` must be between 0 and 120 frames per second, got {self.fps}.")
        if self.colour_map is not None and self.colour_map not in colormaps:
            raise ValueError(unknown_name(self.colour_map, list(colormaps), kind="colour map"))

    @property
    def suffix(self) -> str:
        """The ending of the file name."""
        if self.format == "auto":
            return ".gif" if shutil.which("ffmpeg") is None else ".mp4"
        return f".{self.format}"


DEFAULTS = AnimationOptions()
INSTEAD = "Write a GIF: --animation.format gif, or a name that ends in .gif."


def animate(
    truth: Float[np.ndarray, "s *grid"],
    forecast: Float[np.ndarray, "s *grid"] | None,
    path: str | Path,
    *,
    times: Sequence[float],
    lengths: Sequence[float],
    starts: Sequence[float] | None = None,
    errors: Sequence[float] | None = None,
    labels: Labels = PLAIN,
    options: AnimationOptions = DEFAULTS,
) -> Path:
    """Write an animation, of data alone if `forecast` is None.

    `lengths` and `starts` (0 by default) are those of the axes; `errors`, one per frame, are shown beside the time. The
    ending of `path` decides the format, .gif or .mp4.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise ValueError(f"`path` must end in {' or '.join(ENDINGS)}, got {path.name!r}.")
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise ValueError(f"Writing {path.name} needs ffmpeg, which is not installed. {INSTEAD}")
    if truth.ndim == 4:
        middle = truth.shape[-1] // 2
        truth, forecast = truth[..., middle], None if forecast is None else forecast[..., middle]
    path.parent.mkdir(parents=True, exist_ok=True)
    extents = [(first, first + length) for first, length in zip(starts or [0.0] * len(lengths), lengths, strict=True)]
    with look(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draw = _lines if truth.ndim == 2 else _images
        figure, moving, update = draw(
            AnimatedFields(truth, forecast, times, extents, errors, labels, options.colour_map)
        )
        partial = Path(folder) / path.name
        shown = {image.get_cmap().name: image.get_cmap() for axes in figure.axes for image in axes.images}
        blends = [LinearSegmentedColormap.from_list("", [start, palette()[1]]) for start in (PALE, ink())]
        maps = list(shown.values()) or blends  # where lines cross
        MovingFigure(figure, moving, update, frames=len(times), width=options.width, maps=maps).write(
            partial, fps=options.fps
        )
        partial.replace(path)
    return path


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
    """`animate` on the grid of `data`; a sphere as a map, north up."""
    sizes = [axis.length for axis in data.axes]
    truth, lengths, starts = data.geometry.picture(truth, sizes)
    forecast = None if forecast is None else data.geometry.picture(forecast, sizes)[0]
    settings = {"times": times, "lengths": lengths, "starts": starts, "errors": errors, "labels": labels}
    return animate(truth, forecast, path, options=options, **settings)  # type: ignore[arg-type]


def animate_globe(
    frames: Float[np.ndarray, "s lat lon"],
    path: str | Path,
    *,
    titles: Sequence[str],
    latitude: float = 30.0,
    turn: float = 3.0,
    limit: float | None = None,
) -> Path:
    """A GIF of a globe that turns by `turn` degrees per frame."""
    path = Path(path)
    if path.suffix != ".gif":
        raise ValueError(f"`path` must end in .gif, got {path.name!r}.")
    scale = colours(frames)
    if limit is not None:
        scale = (scale[0], -limit, limit)
    path.parent.mkdir(parents=True, exist_ok=True)
    with look(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        figure = Figure(figsize=(3.0, 3.25))
        axes = figure.subplots()
        image = draw_globe(axes, frames[0], scale, latitude=latitude)
        title = axes.set_title("")

        def update(number: int) -> None:
            image.set_data(seen_from(frames[number], latitude=latitude, longitude=-turn * number))
            title.set_text(titles[number])

        partial = Path(folder) / path.name
        artists, maps = [image, *axes.lines, title], [image.get_cmap()]
        moving = MovingFigure(figure, artists, update, frames=len(frames), width=240, maps=maps)
        moving.write(partial, fps=12.0)
        partial.replace(path)
    return path


def _lines(shown: AnimatedFields) -> tuple[Figure, list[Artist], Update]:
    truth, forecast, labels = shown.truth, shown.forecast, shown.labels
    left, right = shown.extents[0]
    positions = left + (right - left) * np.arange(truth.shape[1]) / truth.shape[1]
    figure = Figure(figsize=(6, 3))
    axes = figure.subplots()
    lines = [axes.plot(positions, truth[0], color=ink(), linewidth=1.2, label="truth")[0]]
    moving: list[Artist] = [*lines]
    if forecast is not None:
        lines += axes.plot(positions, forecast[0], color=palette()[1], label="forecast")
        moving = [*lines, axes.legend(loc="upper right", fontsize=8, frameon=True, framealpha=0.8, edgecolor="none")]
    finite = truth[np.isfinite(truth)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    margin = 0.08 * (high - low) or 1.0
    axes.set(xlabel=labels.axes[0], ylabel=labels.field, ylim=(low - margin, high + margin), xlim=(left, right))
    told = _headings(figure, labels.title)

    def update(frame: int) -> None:
        for line, values in zip(lines, (truth, forecast), strict=False):
            assert values is not None
            line.set_ydata(values[frame])
        told.set_text(shown.status(frame))

    return figure, [*moving, told], update


def _images(shown: AnimatedFields) -> tuple[Figure, list[Artist], Update]:
    truth, forecast, labels = shown.truth, shown.forecast, shown.labels
    panels = [("", truth, colours(truth), labels.scale)] if forecast is None else comparison(truth, forecast, labels)
    (left, right), (bottom, top) = shown.extents[:2]
    wide = float(np.clip((right - left) / (top - bottom), 0.5, 3.0))
    tall = float(np.clip(2.05 / wide, 0.9, 2.05)) + 0.95
    figure = Figure(figsize=(3.2 * len(panels), tall) if forecast is not None else (2.6 * wide + 1.6, 3.2))
    aspect: Literal["equal", "auto"] = "equal" if 0.25 <= (right - left) / (top - bottom) <= 4 else "auto"
    images = []
    moving: list[Artist] = []
    grid = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
    for axes, (name, values, (colour_map, low, high), told) in zip(grid, panels, strict=True):
        chosen = None if name == "forecast - truth" else shown.colour_map
        scale = (chosen or colour_map, low, high)
        image = show_image(axes, values[0].T[::-1], scale, extent=(left, right, bottom, top), aspect=aspect)
        images.append((image, values))
        moving += [image, *axes.spines.values()]
        axes.set_title(name, fontsize=10)
        axes.set(xlabel=labels.axes[0])
        few_ticks(axes)
        if labels.axes == MAP_AXES:
            axes.set(xticks=[0, 180, 360], yticks=[-90, 0, 90])
        figure.colorbar(image, ax=axes, shrink=0.8, label=told)
    grid[0].set_ylabel(labels.axes[1])
    status = _headings(figure, labels.title)

    def update(frame: int) -> None:
        for image, values in images:
            image.set_data(values[frame].T[::-1])
        status.set_text(shown.status(frame))

    return figure, [*moving, status], update


def _headings(figure: Figure, title: str) -> Text:
    """The title at the left above a figure, and the text at the right that changes with every frame."""
    room = int(LETTERS_PER_INCH * figure.get_figwidth()) - STATUS_LETTERS
    figure.suptitle(fill(title, room) or " ", fontsize=9, x=0.01, ha="left")
    return figure.text(0.99, 0.985, "", fontsize=9, ha="right", va="top")
