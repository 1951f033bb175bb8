"""One look for all pictures: colours that survive print and colour blindness, no clutter. Light, or dark on screens."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
from cycler import cycler
from jaxtyping import Float
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, MaxNLocator

from ssno.base.atomic_write import Kind, check_replaceable, whole_file
from ssno.base.formatting import printable
from ssno.data.trajectories import Trajectories
from ssno.data.units import measured

# Which colours and limits a field has, in every picture: the one place that decides.
#
# A field that changes sign has a diverging map about zero, one that does not a sequential map over its range. A
# forecast has the colours of its truth; its difference from it a diverging map of its own.

ONE_SIGN_MAP = "viridis"
NEARLY = 0.02
"""A field whose values below (or above) zero reach so little of its range has one sign: undershoot of a solver."""


def colours(values: Float[np.ndarray, "..."]) -> tuple[str, float, float]:
    """Colour map and limits for a field, never empty."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if min(-low, high) > NEARLY * (high - low):
        return FIELD_MAP, -max(-low, high), max(-low, high)
    return (ONE_SIGN_MAP, low, high) if low < high else (ONE_SIGN_MAP, low - 0.5, high + 0.5)


def difference_colours(forecast: Float[np.ndarray, "..."], truth: Float[np.ndarray, "..."]) -> tuple[str, float, float]:
    """Colour map and limits of a difference, at most the truth's range: a larger one is that of a diverged forecast."""
    difference = np.abs(forecast - truth)
    _, low, high = colours(truth)
    limit = min(float(difference[np.isfinite(difference)].max(initial=0.0)), high - low)
    limit = max(limit, 1e-9 * (high - low))
    return DIFFERENCE_MAP, -limit, limit


def few_ticks(axes: Axes) -> None:
    """Numbers at a few places of both axes of a small image."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
        axis.set_tick_params(labelsize=8)


# What pictures call the field, the axes and the time they show, with the units that files state.

LONGEST = 20
"""Letters that fit beside a colour bar."""
LETTERS_PER_INCH = 11
"""Of a title."""


@dataclass(frozen=True)
class Labels:
    """Words for a picture of one field. `title` stands above it all."""

    field: str = "u"
    axes: tuple[str, ...] = ("x", "y", "z")
    time_unit: str = ""
    title: str = ""
    unit: str = ""

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
        """The same under a title."""
        return replace(self, title=title)


PLAIN = Labels()
MAP_AXES = ("longitude (°)", "latitude (°)")


def labels_of(data: Trajectories, channel: int = 0) -> Labels:
    """Words for a field of these data; on a sphere the axes are those of a map."""
    units = data.units
    axes = MAP_AXES if data.geometry.drawing == "map" else tuple(units.axis_label(axis.name) for axis in data.axes)
    name = data.fields[channel]
    return Labels(units.field_label(name), axes, units.time, unit=units.fields.get(name, ""))


# One look for all pictures: colours that survive print and colour blindness, no clutter. Light, or dark on screens.

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
DARK_COLOURS = ("#56B4E9", "#F28E5C", "#3FC79A", "#E3A1C7", "#F0C04A", "#8FD3FF", "#AAAAAA")
FIELD_MAP, DIFFERENCE_MAP = "RdBu_r", "PuOr"
ENDINGS = (".png", ".pdf", ".svg")
PICTURE = Kind("a picture", re.compile(rb"Matplotlib"))
NO_DATA = "0.7"  # grey: obstacles, land, whatever is masked

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
    """A figure whose words are drawn as they are: `$` in the name of a field begins no formula. Powers on axes are."""

    def draw(self, renderer: Any) -> None:
        """Everything shown passes here, whoever drew it."""
        self.place()
        super().draw(renderer)

    def place(self, like: "Figure | None" = None) -> None:
        """Find places for everything, once: matplotlib would do so, and draw all in vain, before every picture.

        `like` is the same figure in other colours, which has its places.
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
    """Draw inside this context to get our look."""
    with mpl.rc_context({**LOOK, **(DARK if _after_dark.get() else {})}):
        yield


@contextmanager
def dark() -> Iterator[None]:
    """Pictures made inside are for a dark page: light ink, brighter colours, no background."""
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
    """Make the vertical axis logarithmic, if a line on it has a number to show there."""
    heights = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    if any(((height > 0) & np.isfinite(height)).any() for height in heights):
        axes.set_yscale("log")


def check_picture(path: Path, *, option: str) -> None:
    """Refuse names of no picture, and files that are not earlier pictures; before the picture is made."""
    if path.suffix not in ENDINGS:
        raise ValueError(f"`{option}` must end in {' or '.join(ENDINGS)}, got {path.name!r}.")
    check_replaceable(path, PICTURE, option=option)


def save(figure: matplotlib.figure.Figure, path: str | Path) -> Path:
    """Write a figure, whole or not at all; the ending of the name decides the format."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    place(figure)
    with whole_file(path) as partial:
        figure.savefig(partial, dpi=150, format=path.suffix[1:])
    return path


def place(figure: matplotlib.figure.Figure, *, like: matplotlib.figure.Figure | None = None) -> None:
    """`Figure.place` of figures of ours; others lay themselves out."""
    if isinstance(figure, Figure):
        figure.place(like if isinstance(like, Figure) else None)


def _words(artist: Artist) -> Iterator[Text]:
    """All texts of a figure but the powers of ten at logarithmic ticks."""
    if isinstance(artist, Text):
        yield artist
    parts = artist.get_children()
    if isinstance(artist, Axis):
        marks = ((artist.majorTicks, artist.get_major_formatter()), (artist.minorTicks, artist.get_minor_formatter()))
        powers = [tick for ticks, formatter in marks if isinstance(formatter, LogFormatter) for tick in ticks]
        parts = [part for part in parts if part not in powers]
    for part in parts:
        yield from _words(part)
