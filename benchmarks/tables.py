"""Stored rows as Markdown, for docs/design/performance-tables.md: one table per kind of entry, a line per entry."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.rows import Stored
from ssno.base.atomic_write import write_whole

BEGIN, END = "<!-- tables by `python -m benchmarks --page` -->", "<!-- end of tables -->"

HEADINGS = {
    "training-step-and-FFNO": "Training step against FFNO with all modes",
    "training-step": "Training step against the paper's listing",
    "rollout": "Rollout of 22 frames against the paper's listing",
    "frame": "One predicted frame, batch 1, against SS-NO",
    "ks": "Generating Kuramoto-Sivashinsky trajectories, per trajectory",
    "growth": "Growth of a training step",
    "forecast-a-cube": "Three dimensions: a forecast of 64 x 64 x 64 points, per million points",
}
COLUMNS = ("case", "contestant", "ms", "times as fast as", "ratio", "of peak", "must reach", "")


def tables(rows: Iterable[Stored]) -> str:
    """All tables, each under its heading, with where the rows come from."""
    rows, parts = list(rows), []
    for kind, heading in HEADINGS.items():
        mine = [row for row in rows if kind_of(row["entry"]) == kind]
        if not mine:
            continue
        lines = [
            f"## {heading}",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|---|---|--:|---|--:|--:|---|---|",
            *("| " + " | ".join(cells(row, kind)) + " |" for row in mine),
            "",
            origin(mine),
            "",
        ]
        parts += lines
    return "\n".join(parts)


def refresh(page: Path, rows: Iterable[Stored]) -> None:
    """Replace the tables of a page, between the two marks, by those of the rows."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"{page} needs the lines {BEGIN} and {END}, once and in this order, around its tables.")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_whole(page, f"{before}{BEGIN}\n\n{tables(rows)}\n{END}{after}".encode())


def kind_of(entry: str) -> str:
    """The kind of an entry is the first heading its name begins with."""
    return next((kind for kind in HEADINGS if entry.startswith(kind)), "")


def cells(row: Stored, kind: str) -> list[str]:
    """One line of a table."""
    is_reference = row["contestant"] == row["reference"]
    spread = (row["ms_upper"] - row["ms_lower"]) / 2 / row["ms"]
    ratio = "" if is_reference else f"{row['ratio']:.3g} ({row['ratio_lower']:.3g} to {row['ratio_upper']:.3g})"
    if row["exponent"] is not None:
        ratio += f", time ~ size^{row['exponent']:.2f}"
    return [
        row["entry"].removeprefix(kind).strip("-"),
        row["contestant"],
        f"{row['ms']:.3g} ±{100 * spread:.0f} %",
        "" if is_reference else row["reference"],
        ratio,
        "" if row["fraction"] is None else f"{100 * row['fraction']:.0f} %",
        row["goal"],
        "" if row["met"] is None else "yes" if row["met"] else "**no**",
    ]


def origin(rows: Sequence[Stored]) -> str:
    """Where and when rows were measured, each different answer once."""
    places = dict.fromkeys(
        f"{row['date'][:10]}, commit {row['commit'][:10]}, {row['processor']}, {row['cores']} cores, "
        f"{row['threads']} threads, torch {row['torch']}, load before the run {row['load'] or 'not recorded'}"
        for row in rows
    )
    peaks = [row["peak_gflop_per_s"] for row in rows if row["peak_gflop_per_s"] is not None]
    peak = f" GEMM peak in the same rounds: {min(peaks):.0f} to {max(peaks):.0f} GFLOP/s." if peaks else ""
    return f"Measured {'; '.join(places)}. Median of {min(row['rounds'] for row in rows)} or more rounds.{peak}"
