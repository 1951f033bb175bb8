"""All entries, in the order in which they run."""

from collections.abc import Sequence

from benchmarks import generation, growth, rollouts, training
from benchmarks.entry import Entry


def catalogue() -> list[Entry]:
    """Every benchmark there is."""
    return [entry for module in (training, rollouts, generation, growth) for entry in module.entries()]


def chosen(entries: Sequence[Entry], names: Sequence[str]) -> list[Entry]:
    """The entries whose name contains any of `names`; all if none is given."""
    for name in names:
        if not any(name in entry.name for entry in entries):
            raise ValueError(
                f"No benchmark has {name!r} in its name. There are: {', '.join(entry.name for entry in entries)}."
            )
    return [entry for entry in entries if not names or any(name in entry.name for name in names)]
