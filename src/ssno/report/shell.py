"""The page around any content: the template with its looks and behaviour, all in one file that fetches nothing."""

from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template

from ssno.base.provenance import provenance
from ssno.report.markup import text


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
