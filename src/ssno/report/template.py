"""HTML pages from the templates of this package (Jinja2), with figures inside: one file that fetches nothing.

Autoescaping is on for every page and no string is marked as safe, so a name from a file never becomes markup.
Jinja2 comes with torch.
"""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from ssno.base.provenance import provenance
from ssno.plots.style import dark, place

ENVIRONMENT = Environment(
    loader=PackageLoader("ssno.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}

PIXELS_PER_INCH = 118
"""Largest size at which a figure is shown."""
KINDS = {"svg": "image/svg+xml", "png": "image/png"}


def render(template: str, **values: Any) -> str:
    """A complete page; every template extends base.html, which needs command, heading, lead and links."""
    return ENVIRONMENT.get_template(template).render(**made_by(), **values)


def made_by() -> dict[str, Any]:
    """What every page says about its origin."""
    return {"version": version("ssno"), "commit": provenance()["commit"]}


def data_uri(content: bytes, kind: str) -> str:
    """A file as an address that holds the file itself."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@dataclass(frozen=True)
class Picture:
    """A figure as two addresses that hold it, for light and dark pages, and what is said about it."""

    light: str
    dark: str
    alternative: str
    caption: str = ""
    width: int = 0
    """Largest width in pixels."""
    wide: bool = False
    """Whether it takes a row of its own and scrolls on a phone."""


def picture(
    draw: Callable[[], Figure], alternative: str, *, format: Literal["svg", "png"] = "svg", caption: str = ""
) -> Picture:
    """Draw a figure twice, in light and dark: vector graphics for lines, pixels for fields."""
    figure = draw()
    light, (width, height) = encode(figure, format), figure.get_size_inches()
    with dark():
        twin = draw()
        place(twin, like=figure)
        night = encode(twin, format)
    wide = bool(width > 2.2 * height or width > 9)
    return Picture(light, night, alternative, caption, round(PIXELS_PER_INCH * width), wide)


def encode(figure: Figure, format: Literal["svg", "png"]) -> str:
    """A figure as an address that holds it; the same figure gives the same bytes."""
    place(figure)
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ssno", "svg.fonttype": "path"}):
        figure.savefig(content, format=format, dpi=130, metadata={"Date": None} if format == "svg" else {})
    return data_uri(content.getvalue(), KINDS[format])
