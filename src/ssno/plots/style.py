"""One look for all pictures: colours that survive print and colour blindness, no clutter."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
FIELD_MAP, DIFFERENCE_MAP = "RdBu_r", "PuOr"

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


@contextmanager
def look() -> Iterator[None]:
    """Draw inside this context to get our look."""
    with mpl.rc_context(LOOK):
        yield


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure; the ending of the name decides the format."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
