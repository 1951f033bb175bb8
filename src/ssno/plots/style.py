"""The style of all figures: colours and limits of fields, labels with units, light and dark themes, saving."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.figure
import numpy as np
from cycler import cycler
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.image import AxesImage
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, MaxNLocator

from ssno.base.atomic_write import Kind, check_replaceable, whole_file
from ssno.base.formatting import printable
from ssno.data.trajectories import Trajectories
from ssno.data.units import measured
from ssno.pde.geometry import SPHERE

# Colours and limits of a field: a diverging map about zero if it changes sign, else a sequential map over its range. A
# forecast has the colours of its truth, the difference between them a diverging map of its own.

Scale = tuple[str, float, float]
"""Colour map, lower and upper limit."""
ONE_SIGN_MAP = "viridis"
UNDERSHOOT = 0.02
"""A field that crosses zero by less than this fraction of its range counts as of one sign: undershoot of a solver."""


def colours(values: Float[np.ndarray, "..."]) -> Scale:
    """Colour map and limits of a field; the limits always differ."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if min(-low, high) > UNDERSHOOT * (high - low):
        return FIELD_MAP, -max(-low, high), max(-low, high)
    return (ONE_SIGN_MAP, low, high) if low < high else (ONE_SIGN_MAP, low - 0.5, high + 0.5)


def difference_colours(forecast: Float[np.ndarray, "..."], truth: Float[np.ndarray, "..."]) -> Scale:
    """Colour map and limits of a difference, at most the truth's range: a forecast with larger errors has diverged."""
    difference = np.abs(forecast - truth)
    _, low, high = colours(truth)
    limit = min(float(difference[np.isfinite(difference)].max(initial=0.0)), high - low)
    limit = max(limit, 1e-9 * (high - low))
    return DIFFERENCE_MAP, -limit, limit


def comparison(
    truth: Float[np.ndarray, "*shape"], forecast: Float[np.ndarray, "*shape"], labels: "Labels"
) -> list[tuple[str, np.ndarray, Scale, str]]:
    """Truth, forecast and difference: name, values, colours and limits, label of the colour bar."""
    scale = colours(truth)
    return [
        ("truth", truth, scale, labels.scale),
        ("forecast", forecast, scale, labels.scale),
        ("forecast - truth", forecast - truth, difference_colours(forecast, truth), "difference"),
    ]


def evenly_spaced(count: int, most: int) -> list[int]:
    """At most `most` of `count` frames, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int)).tolist()


def show_image(
    axes: Axes,
    values: Float[np.ndarray, "row column"],
    scale: Scale,
    *,
    extent: tuple[float, float, float, float],
    aspect: Literal["equal", "auto"] = "auto",
) -> AxesImage:
    """An image with its first row on top; grey where values are not finite."""
    colour_map, low, high = scale
    axes.grid(False)
    axes.set_facecolor(NO_DATA)
    return axes.imshow(
        values, extent=extent, cmap=colour_map, vmin=low, vmax=high, aspect=aspect, interpolation="nearest"
    )


def few_ticks(axes: Axes) -> None:
    """At most three tick labels on both axes of a small image."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
        axis.set_tick_params(labelsize=8)


# Labels of the field, the axes and the time, with the units that files state.

LONGEST = 20
"""Characters that fit beside a colour bar."""
LETTERS_PER_INCH = 11
"""Characters of a title per inch of the figure."""


@dataclass(frozen=True)
class Labels:
    """Labels of a figure of one field."""

    field: str = "u"
    axes: tuple[str, ...] = ("x", "y", "z")
    time_unit: str = ""
    title: str = ""
    unit: str = ""
    where: str = ""  # which plane of a box is drawn

    @property
    def scale(self) -> str:
        """What a colour bar says: the field, of which a long name would not fit and leaves its unit."""
        return self.field if len(self.field) <= LONGEST else self.unit

    def above(self, figure: matplotlib.figure.Figure, otherwise: str) -> str:
        """The title in lines that a figure has room for."""
        return fill(self.title or otherwise, int(LETTERS_PER_INCH * figure.get_figwidth()))

    def at(self, time: float) -> str:
        """A time: "t = 0.5 s"."""
        return measured(f"t = {time:.5g}", self.time_unit)

    def titled(self, title: str) -> "Labels":
        """The same under a title, which also says what part is drawn."""
        return replace(self, title=", ".join(filter(None, (title, self.where))))


PLAIN = Labels()
MAP_AXES = SPHERE.map_axes


def labels_of(data: Trajectories, channel: int = 0) -> Labels:
    """Labels for a field of these data; on a sphere the axes are those of a map."""
    units = data.units
    axes = data.geometry.map_axes or tuple(units.axis_label(axis.name) for axis in data.axes)
    name = data.fields[channel]
    return Labels(units.field_label(name), axes, units.time, unit=units.fields.get(name, ""))


# Themes: colours that survive print and colour blindness, light and dark.

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
DARK_COLOURS = ("#56B4E9", "#F28E5C", "#3FC79A", "#E3A1C7", "#F0C04A", "#8FD3FF", "#AAAAAA")
FIELD_MAP, DIFFERENCE_MAP = "RdBu_r", "PuOr"
ENDINGS = (".png", ".pdf", ".svg")
PICTURE = Kind("a picture", re.compile(rb"Matplotlib"))
NO_DATA = "0.7"  # grey: masked points

LOOK: dict[Any, Any] = {
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
INK = "#e6e8ec"
DARK: dict[Any, Any] = {
    "axes.edgecolor": "#8b93a1",
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.prop_cycle": cycler(color=DARK_COLOURS),
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "xtick.color": "#aab1bd",
    "ytick.color": "#aab1bd",
}
_after_dark: ContextVar[bool] = ContextVar("after_dark", default=False)


class Figure(matplotlib.figure.Figure):
    """A figure without mathtext: a `$` in the name of a field starts no formula. Powers of ten at ticks are kept."""

    def draw(self, renderer: Any) -> None:
        """Lay the figure out, then draw it."""
        self.place()
        super().draw(renderer)

    def place(self, like: "Figure | None" = None) -> None:
        """Compute the layout once; matplotlib would repeat it, and draw everything for it, at every draw.

        `like` is the same figure in other colours, whose layout is copied.
        """
        for text in _words(self):
            text.set_parse_math(False)
            text.set_text(printable(text.get_text()))
        engine = self.get_layout_engine()
        if engine is None:
            return
        if like is None:
            engine.execute(self)
        else:
            for axes, other in zip(self.axes, like.axes, strict=True):
                axes.set_position(other.get_position(original=True))
            for text, placed in zip(self.texts, like.texts, strict=True):
                text.set_position(placed.get_position())
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            self.set_layout_engine(None)


@contextmanager
def look() -> Iterator[None]:
    """Draw inside this context to get the style of ssno."""
    with mpl.rc_context({**LOOK, **(DARK if _after_dark.get() else {})}):
        yield


@contextmanager
def dark() -> Iterator[None]:
    """Figures made inside are for a dark page: light text, brighter colours, no background."""
    token = _after_dark.set(True)
    try:
        yield
    finally:
        _after_dark.reset(token)


def palette() -> tuple[str, ...]:
    """The colours of lines, in order."""
    return DARK_COLOURS if _after_dark.get() else COLOURS


def ink() -> str:
    """The colour of text, and of the truth."""
    return INK if _after_dark.get() else "#111111"


def logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic if a line on it has a positive value."""
    heights = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    if any(((height > 0) & np.isfinite(height)).any() for height in heights):
        axes.set_yscale("log")


def check_picture(path: Path, *, option: str) -> None:
    """Refuse other file types, and to replace a file that is not a figure of ssno; called before drawing."""
    if path.suffix not in ENDINGS:
        raise ValueError(f"`{option}` must end in {' or '.join(ENDINGS)}, got {path.name!r}.")
    check_replaceable(path, PICTURE, option=option)


def save(figure: matplotlib.figure.Figure, path: str | Path) -> Path:
    """Write a figure atomically; the ending of the name decides the format."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    place(figure)
    with whole_file(path) as partial:
        figure.savefig(partial, dpi=150, format=path.suffix[1:])
    return path


def place(figure: matplotlib.figure.Figure, *, like: matplotlib.figure.Figure | None = None) -> None:
    """`Figure.place` for figures of ssno; others lay themselves out."""
    if isinstance(figure, Figure):
        figure.place(like if isinstance(like, Figure) else None)


def _words(artist: Artist) -> Iterator[Text]:
    """All texts of a figure except the powers of ten at logarithmic ticks."""
    if isinstance(artist, Text):
        yield artist
    parts = artist.get_children()
    if isinstance(artist, Axis):
        marks = ((artist.majorTicks, artist.get_major_formatter()), (artist.minorTicks, artist.get_minor_formatter()))
        powers = [tick for ticks, formatter in marks if isinstance(formatter, LogFormatter) for tick in ticks]
        parts = [part for part in parts if part not in powers]
    for part in parts:
        yield from _words(part)
