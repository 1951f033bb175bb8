"""Small pieces of HTML. Everything that comes from outside passes through `text`, so no name can become markup."""

import base64
import html
import io
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

from ssno.base.provenance import provenance
from ssno.plots.style import dark, place


def text(value: object) -> str:
    """A value as text: characters that mean something in HTML are escaped."""
    return html.escape(str(value), quote=True)


def data_uri(content: bytes, kind: str) -> str:
    """A file as an address that holds the file itself."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def script_data(name: str, value: Any) -> str:
    """JSON for the page's own script. Escaped, so that no string inside can end the element."""
    content = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{text(name)}">{content}</script>'


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", notes: Mapping[str, str] | None = None
) -> str:
    """A table of words; the first column names the row, `notes` explain names in small print.

    Wide tables scroll inside their frame.
    """
    head = "".join(f'<th scope="col">{text(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{text(row[0])}{_small((notes or {}).get(row[0]))}</th>'
        f"{''.join(f'<td>{text(cell)}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    frame = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption or "table")}">{frame}</div>'


def _small(note: str | None) -> str:
    return f"<small>{text(note)}</small>" if note else ""


def facts(values: Mapping[str, object]) -> str:
    """Names and values in two columns."""
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in values.items())
    return f'<dl class="facts">{rows}</dl>'


def cards(values: Sequence[tuple[str, str, str]]) -> str:
    """Large numbers: (what, how much, remark)."""
    items = "".join(
        f'<li><span class="what">{text(what)}</span><strong>{text(much)}</strong><span>{text(remark)}</span></li>'
        for what, much, remark in values
    )
    return f'<ul class="cards">{items}</ul>'


def commands(lines: Sequence[str]) -> str:
    """Lines for a terminal."""
    return f'<pre class="commands" tabindex="0"><code>{text(chr(10).join(lines))}</code></pre>'


def folded(title: str, content: str) -> str:
    """Content that opens on request, and is open on paper."""
    return f"<details><summary>{text(title)}</summary>{content}</details>"


def section(identity: str, title: str, content: str, *, level: int = 2) -> str:
    """A part of the page with a heading that can be linked to."""
    heading = f"<h{level}>{text(title)}</h{level}>"
    return f'<section id="{text(identity)}">{heading}{content}</section>'


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as dotted names."""
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value)
    return flat


# The page around any content: the template with its looks and behaviour, all in one file that fetches nothing.


def shell(*, title: str, heading: str, lead: str, links: Sequence[tuple[str, str]], content: str) -> str:
    """A whole HTML page. `links` lead to sections of `content`, which is HTML; everything else is plain text."""
    return Template(_file("page.html")).substitute(
        title=text(title),
        heading=text(heading),
        lead=text(lead),
        generator=text(f"ssno {version('ssno')}"),
        navigation="".join(f'<a href="#{text(key)}">{text(label)}</a>' for key, label in links),
        content=content,
        style=_file("page.css"),
        script=_file("page.js"),
        footer=text(f"Made by ssno {version('ssno')}, commit {provenance()['commit']}. This page is a single file."),
    )


def _file(name: str) -> str:
    return files("ssno.report").joinpath(name).read_text(encoding="utf-8")


# Figures inside a page: vector graphics for lines, pixels for fields, each in light and dark.

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
