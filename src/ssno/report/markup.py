"""Small pieces of HTML. Everything that comes from outside passes through `text`, so no name can become markup."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any


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
