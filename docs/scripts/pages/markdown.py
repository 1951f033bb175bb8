"""Markdown of the generated pages: tables, numbers, links between pages, and pictures that are drawn once."""

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from ssno.evaluation import SeedSummary

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GENERATED = "<!-- Written by docs/scripts/pages: change that, not this file. -->\n"
REPOSITORY = ""
"""Files outside docs/ are named, not linked: pages are read on a site, in a checkout and in an sdist."""


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, right: int = 1) -> str:
    """A Markdown table whose columns from `right` on are aligned to the right."""
    marks = ["---" if column < right else "---:" for column in range(len(headings))]
    lines = [list(headings), marks, *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def over_seeds(summary: SeedSummary | None) -> str:
    """Mean and standard deviation over seeds, and how many: 0.119 ± 0.002 (3)."""
    if summary is None:
        return "-"
    if not math.isfinite(summary.mean):
        return "diverged"
    spread = "" if math.isnan(summary.spread) else f" ± {summary.spread:.2g}"
    return f"{summary.mean:.3g}{spread} ({len(summary.values)})"


def page_link(text: str, name: str, *, near: Path) -> str:
    """A link to a page of the manual by its file name; plain text where there is none."""
    found = _pages().get(name)
    return text if found is None else f"[{text}]({os.path.relpath(found, near.parent)})"


@cache
def _pages() -> dict[str, Path]:
    return {path.name: path for path in (DOCS / "manual").glob("*.md")}


def draw_once(path: Path, key: str, draw: Callable[[Path], object]) -> bool:
    """Draw a picture unless it is there and was drawn from the same inputs; says whether it was drawn."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    stamp = path.parent / ".drawn" / f"{path.name}.sha256"
    if path.is_file() and stamp.is_file() and stamp.read_text() == digest:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp.parent.mkdir(exist_ok=True)
    draw(path)
    stamp.write_text(digest)
    return True


@cache
def source_digest(*packages: str) -> str:
    """A digest of the code that a picture depends on."""
    paths = sorted(path for package in packages for path in (ROOT / "src" / "ssno" / package).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def write_page(path: Path, text: str) -> Path:
    """Write a page if it changed, so that a server that watches the folder stays quiet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = text.rstrip() + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path
