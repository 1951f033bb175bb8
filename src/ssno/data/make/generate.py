"""Generate a dataset into a folder: check, forecast, make what is missing, seal.

    plan = Plan(KuramotoSivashinsky(viscosity=0.075), counts={"train": 2048, "valid": 256})
    generate(plan, Path("data/ks-0.075-paper"), workers=2)

Calling it again continues: finished shards are kept, everything else is made anew. Several machines may work in one
folder at the same time, each on its own part (`part=(1, 4)`); whoever finds the dataset complete writes the
manifest. The result is the same to the last bit in all these cases.
"""

import errno
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssno.base import byte_size
from ssno.base.provenance import provenance
from ssno.base.whole import write_whole
from ssno.data.make.expected_cost import GenerationCost, expected_cost
from ssno.data.make.plan import Plan, count_trajectories
from ssno.data.make.workers import run
from ssno.data.store.manifest import (
    DESCRIPTION,
    MANIFEST,
    PROGRESS,
    Entry,
    entries_of,
    finished_shards,
    read_manifest,
    seal,
    unseal,
    write_manifest,
)

PLANNED = f"{PROGRESS}/recipe.json"
NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}


@dataclass(frozen=True)
class GenerationReport:
    """What a call to `generate` did: shards made now, kept from before, and missing (other parts make them)."""

    folder: Path
    forecast: GenerationCost
    made: int
    kept: int
    missing: int
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether the dataset is whole and its manifest written."""
        return self.missing == 0 and (self.folder / MANIFEST).is_file()


def generate(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    batch: int | None = None,
    part: tuple[int, int] = (1, 1),
    dry_run: bool = False,
    announce: Callable[[GenerationCost], None] = lambda _: None,
    report: Callable[[float, int], None] = lambda done, total: None,
    origin: Mapping[str, str | int] | None = None,
) -> GenerationReport:
    """Make the shards of `part` that are not yet in `folder`, and the manifest once all parts are there.

    `workers` is the number of single-threaded processes, by default one per core where that pays; `batch` the
    number of trajectories solved at once. `announce` hears the forecast before the work starts, `report` the number of
    trajectories solved so far and in total. `dry_run` stops after the forecast and writes nothing. `origin` is
    what files and manifest say about versions, commit and hardware; those of this process by default.
    """
    start = time.monotonic()
    batch = plan.problem.preferred_batch if batch is None else batch
    for name, value in (("workers", workers), ("batch", batch)):
        if value is not None and value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")
    origin = provenance() if origin is None else origin
    mine = plan.part(*part)
    refuse_other_plans(plan, folder)
    kept = finished_shards(folder, mine)
    todo = [shard for shard in mine if shard.path not in kept]
    if todo and not dry_run:
        prepare_folder(plan, folder)
    cost = expected_cost(plan, todo, workers=workers, batch=batch, provenance=origin)
    check_room(cost, folder)
    announce(cost)
    made: list[Entry] = []
    if todo and not dry_run:
        total, solved = count_trajectories(todo), 0.0

        def tell(trajectories: float) -> None:
            nonlocal solved
            solved += trajectories
            report(min(solved, total), total)

        run(plan, folder, todo, workers=cost.workers, batch=batch, provenance=origin, report=tell, stored=made.append)
        report(total, total)  # fractions of trajectories may not add up to the last digit
    missing = len(plan.shards()) - len(finished_shards(folder, plan.shards()))
    if missing == 0 and not dry_run:
        seal_folder(plan, folder)
    return GenerationReport(folder, cost, len(made), len(mine) - len(todo), missing, time.monotonic() - start)


def refuse_other_plans(plan: Plan, folder: Path) -> None:
    """Raise `FileExistsError` if the folder holds, or is being filled with, anything but this plan."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; `out` must be a folder.")
    if (folder / MANIFEST).is_file():
        theirs = read_manifest(folder)[DESCRIPTION]
    elif (folder / PLANNED).is_file():
        theirs = unseal(folder / PLANNED)
    elif any(path.name != PROGRESS for path in folder.iterdir()):
        raise FileExistsError(
            f"{folder} is not empty and was not made by `ssno data generate`. Choose another `out`, or empty it."
        )
    else:
        return
    theirs.pop("same_as", None)  # older ones said that valid was test; now loading holds out training trajectories
    if differences := compare(theirs, plan.description()):
        raise FileExistsError(
            f"{folder} holds another dataset: {'; '.join(differences)}. Choose another `out`, or move it away."
        )


def compare(theirs: Mapping[str, Any], ours: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What differs between two descriptions, in words."""
    differences = []
    for key in sorted({*theirs, *ours}):
        there, here = theirs.get(key), ours.get(key)
        if isinstance(there, dict) and isinstance(here, dict):
            differences += compare(there, here, f"{prefix}{key}.")
        elif there != here:
            differences.append(f"`{prefix}{key}` is {_short(there)} there and {_short(here)} here")
    return differences


def prepare_folder(plan: Plan, folder: Path) -> None:
    """Make the folder and leave the plan in it; a folder that cannot be written is found out here."""
    try:
        (folder / PROGRESS).mkdir(parents=True, exist_ok=True)
        write_whole(folder / PLANNED, seal(plan.description()))  # first of all: a folder with a plan can be continued
        for shard in plan.shards():
            (folder / shard.path).parent.mkdir(exist_ok=True)
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        raise PermissionError(f"Cannot write to {folder} ({error.strerror}). Choose another `out`.") from error
    refuse_other_plans(plan, folder)  # another job may have left its plan at the same moment


def check_room(cost: GenerationCost, folder: Path) -> None:
    """Raise `OSError` if the disk has less room than the dataset needs."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if cost.disk_bytes > free:
        raise OSError(
            f"The dataset needs about {byte_size(cost.disk_bytes)} but {there} has {byte_size(free)} free. Free some "
            "space or choose another `out`."
        )


def seal_folder(plan: Plan, folder: Path) -> None:
    """Write the manifest of a whole dataset; remove the notes and what killed writers left behind."""
    entries = finished_shards(folder, plan.shards())
    listed = [entries[shard.path] for shard in plan.shards()]
    if not (folder / MANIFEST).is_file() or entries_of(read_manifest(folder)) != listed:
        write_manifest(folder, description=plan.description(), entries=listed)
    for leftover in (*folder.glob("*.partial"), *folder.glob("*/*.partial")):
        leftover.unlink(missing_ok=True)
    shutil.rmtree(folder / PROGRESS, ignore_errors=True)  # another job may be removing it too


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
