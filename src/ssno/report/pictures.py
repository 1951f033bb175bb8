"""Figures inside a page: vector graphics for lines, pixels for fields, each in light and dark."""

import io
from collections.abc import Callable
from typing import Literal

import matplotlib as mpl
from matplotlib.figure import Figure

from ssno.plots.style import dark, place
from ssno.report.markup import data_uri, text

Format = Literal["svg", "png"]
LARGEST = 118  # pixels per inch of the figure
KINDS = {"svg": "image/svg+xml", "png": "image/png"}


def picture(draw: Callable[[], Figure], alternative: str, *, format: Format = "svg", caption: str = "") -> str:
    """A figure that follows the reader's colour scheme. `draw` is called twice, once for each.

    It is never shown much larger than it was drawn; a wide one keeps a readable size on a phone and scrolls.
    """
    figure = draw()
    light, (width, height) = encode(figure, format), figure.get_size_inches()
    with dark():
        other = draw()
        place(other, like=figure)
        night = encode(other, format)
    title = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    kind = "picture wide" if width > 2.2 * height or width > 9 else "picture"
    return (
        f'<figure class="{kind}"><div><picture><source media="(prefers-color-scheme: dark)" srcset="{night}">'
        f'<img src="{light}" alt="{text(alternative)}" style="max-width: {LARGEST * width:.0f}px"></picture></div>'
        f"{title}</figure>"
    )


def encode(figure: Figure, format: Format) -> str:
    """A figure as an address that holds it; the same figure gives the same bytes."""
    place(figure)
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ssno", "svg.fonttype": "path"}):
        figure.savefig(content, format=format, dpi=130, metadata={"Date": None} if format == "svg" else {})
    return data_uri(content.getvalue(), KINDS[format])
