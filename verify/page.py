"""The page of results, docs/evidence/trust.md, from the files in results/verify and from nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from verify.campaign import Part, Record, read_record

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "trust.md"
INTRODUCTION = """# Trust

What ssno was put through, and what came of it. `make verify` does all of it again, in one night on two cores or in
pieces of any length (`python -m verify --minutes 14`; it goes on where it was); `python -m verify --page` writes this
page from `results/verify/*.json`, where every piece of work has its date, commit, machine and versions. A part that has
not reached its goal is shown as unfinished, with what there is. What is promised at all is in
[service levels](../manual/service-levels.md); who may give us which file, in `SECURITY.md`.
"""


def write_page(parts: Sequence[Part], *, results: Path, page: Path = PAGE) -> None:
    """Write it; the order is that of the parts."""
    page.write_text("\n".join(lines([(part, read_record(part, results)) for part in parts])) + "\n")


def lines(known: Sequence[tuple[Part, Record]]) -> Iterator[str]:
    """The page."""
    yield INTRODUCTION
    yield "| part | reached | goal | state | failures | mended |\n|---|---|---|---|---|---|"
    for part, record in known:
        state = "not begun" if not record.trials else "complete" if record.complete else "unfinished"
        mended = record.counts["failed, then mended"]
        reached, goal = (f"{record.done:,} {part.unit}", f"{record.goal:,}") if record.trials else ("", "")
        row = (f"[{part.name}](#{part.name})", reached, goal, state)
        yield f"| {' | '.join(row)} | {record.counts['failed']} | {mended} |"
    for part, record in known:
        yield f"\n## {part.name}\n\n{part.about}"
        if record.trials:
            yield f"\n{counted(record)}\n\n{worked(record)}"
            yield from (f"\nFailure of trial {one['number']}: {short(one['error'])}" for one in record.failures[:3])


def counted(record: Record) -> str:
    """Counts in words."""
    counts = sorted(record.counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name} {count:,}" for name, count in counts[:40])
    return f"{record.trials:,} trials: {shown}." if shown else f"{record.trials:,} trials."


def worked(record: Record) -> str:
    """When, on what, with what."""
    pieces = record.pieces
    dates = sorted({piece["date"][:10] for piece in pieces})
    commits = list(dict.fromkeys(str(piece["commit"])[:7] for piece in pieces))
    minutes = sum(piece["seconds"] for piece in pieces) / 60
    last = pieces[-1]
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    versions = f"Python {last['python']}, PyTorch {last['torch']}, NumPy {last['numpy']}"
    return (
        f"{when}, commit{'s' * (len(commits) > 1)} {', '.join(commits)}, {minutes:.0f} minutes in {len(pieces)} "
        f"piece{'s' * (len(pieces) > 1)} on {last['processor']} ({last['cores']} core{'s' * (last['cores'] > 1)}), "
        f"{versions}."
    )


def short(text: str) -> str:
    """An error as one line of a page."""
    line = " ".join(text.split()).replace("|", "/").replace("<", "&lt;")
    return f"`{line[:160].replace('`', chr(39))}`"
