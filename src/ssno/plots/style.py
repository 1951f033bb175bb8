"""One look for all pictures: colours that survive print and colour blindness, no clutter. Light, or dark on screens."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter

from ssno.base.names import printable
from ssno.base.replaceable import Kind, check_replaceable
from ssno.base.whole import whole_file

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
