"""The manifest: what a dataset's folder must contain, byte for byte, and the notes of an unfinished one.

    data/ks-0.075-paper/manifest.json            sealed list of all shards, written last
                        .progress/recipe.json    the plan, written first: other plans are refused
                        .progress/train-shard-000.json   a note per finished shard, written after it
                        train/shard-000.h5 ...

A manifest holds the sha256 of every shard and of itself, in one canonical spelling, so that any changed bit in the
folder shows. The notes make an interrupted or shared-out generation continue; the last one turns them into the
manifest and removes them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ssno.base.atomic_write import write_whole
from ssno.base.json_io import from_text, read_regular
from ssno.data.errors import DataError
from ssno.data.sandbox.hdf5 import Checked
from ssno.data.sandbox.parent import contents_of, why_not_regular
from ssno.data.splits import SPLITS, Split
from ssno.data.trajectories import Described, trajectory_bytes
from ssno.pde.geometry import Axis

MANIFEST = "manifest.json"
PROGRESS = ".progress"
FORMAT = "ssno-dataset"
FORMAT_VERSION = 1
SEAL = "manifest_sha256"
DESCRIPTION = "recipe"
"""Key of what describes the data: an old name, kept because manifests are."""
SHARD_PATH = re.compile(r"(train|valid|test)/shard-[0-9]{3}\.h5")


LARGEST_SHARD = 64 * 2**20  # bytes before compression: what a kill may cost, and what a worker holds in memory
MOST_TRAJECTORIES = 64
MOST_SHARDS = 1000  # `shard-NNN.h5`: three digits, so that names sort like numbers


@dataclass(frozen=True)
class Shard:
    """`count` trajectories of a split, from trajectory `first` on, in one file."""

    split: Split
    number: int
    first: int
    count: int

    @property
    def path(self) -> str:
        """Where the shard lives in the dataset's folder."""
        return f"{self.split}/shard-{self.number:03d}.h5"

    @property
    def trajectories(self) -> range:
        """Numbers of its trajectories in the split."""
        return range(self.first, self.first + self.count)


def most_per_shard(described: Described) -> int:
    """Trajectories that fit into one file: at most 64, at most 64 MiB before compression."""
    return max(1, min(MOST_TRAJECTORIES, LARGEST_SHARD // trajectory_bytes(described)))


def into_shards(counts: Mapping[Split, int], size: int) -> list[Shard]:
    """All files of a dataset with `size` trajectories each, split by split."""
    return [
        Shard(split, first // size, first, min(size, counts[split] - first))
        for split in SPLITS
        if split in counts
        for first in range(0, counts[split], size)
    ]


def count_trajectories(shards: Sequence[Shard]) -> int:
    """How many trajectories these files hold together."""
    return sum(shard.count for shard in shards)


@dataclass(frozen=True)
class Entry:
    """A finished shard: where it is, which trajectories it holds, and the fingerprint of its bytes."""

    path: str
    split: Split
    first: int
    count: int
    size: int
    sha256: str
    provenance: Mapping[str, str | int]

    @classmethod
    def of(cls, shard: Shard, data: bytes, provenance: Mapping[str, str | int]) -> "Entry":
        """The entry of a shard whose file is `data`."""
        digest = hashlib.sha256(data).hexdigest()
        return cls(shard.path, shard.split, shard.first, shard.count, len(data), digest, provenance)


def canonical(content: Mapping[str, Any]) -> bytes:
    """The one spelling of a JSON object that we write and accept."""
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def seal(content: Mapping[str, Any]) -> bytes:
    """The bytes of a sealed file: canonical JSON that contains the sha256 of the rest."""
    return canonical({**content, SEAL: hashlib.sha256(canonical(content)).hexdigest()})


def unseal(path: Path) -> dict[str, Any]:
    """Read a sealed file. Any difference from what `seal` wrote raises `DataError`."""
    data = read_regular(path)
    try:
        content = from_text(data)
        content.pop(SEAL)
        intact = isinstance(content, dict) and seal(content) == data
    except (ValueError, TypeError, KeyError, AttributeError):
        intact = False
    if not intact:
        raise DataError(
            f"{path} was changed or damaged: it is not what ssno wrote (its checksum does not fit). Restore it from "
            "a copy, or move the folder away and generate it again."
        )
    return content


def write_manifest(
    folder: Path,
    *,
    description: Mapping[str, Any],
    entries: Sequence[Entry],
    name: str | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Seal the list of shards of a whole dataset. `description` is any JSON object that says how they were made."""
    origins: list[Mapping[str, str | int]] = []
    shards = []
    for entry in entries:
        if entry.provenance not in origins:
            origins.append(entry.provenance)
        shards.append({**vars(entry), "provenance": origins.index(entry.provenance)})
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": folder.name if name is None else name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        DESCRIPTION: dict(description),
        "provenance": origins,
        "shards": shards,
        **({} if statistics is None else {"statistics": dict(statistics)}),
    }
    write_whole(folder / MANIFEST, seal(content))
    return content


def read_manifest(folder: Path) -> dict[str, Any]:
    """The sealed content of a folder's manifest. Raises `FileNotFoundError` or `DataError`."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {MANIFEST}: it is not a finished dataset of ssno.")
    content = unseal(path)
    if content.get("format") != FORMAT or content.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"{path} has format {content.get('format')!r} version {content.get('format_version')!r}; this ssno reads "
            f"{FORMAT!r} version {FORMAT_VERSION}."
        )
    if not isinstance(content.get(DESCRIPTION), dict):
        raise DataError(f"{path} does not describe its data: it was edited by hand or by another program.")
    return content


def entries_of(manifest: Mapping[str, Any]) -> list[Entry]:
    """The shards a manifest lists. A list that no generation could have written raises `DataError`."""
    try:
        entries = [
            _entry({**shard, "provenance": manifest["provenance"][shard["provenance"]]}) for shard in manifest["shards"]
        ]
        sound = len({entry.path for entry in entries}) == len(entries)
    except (KeyError, TypeError, IndexError):
        sound = False
    if not sound:
        raise DataError(_MALFORMED)
    return entries


_MALFORMED = "The list of shards is malformed: it was edited by hand or by another program."


def _entry(content: Mapping[str, Any]) -> Entry:
    """The entry that a note or a manifest describes; anything that no generation could have written is refused."""
    if set(content) != {field.name for field in fields(Entry)}:
        raise DataError(_MALFORMED)
    entry = Entry(**content)
    numbers = (entry.first, entry.count, entry.size)
    if not (
        isinstance(entry.path, str)
        and SHARD_PATH.fullmatch(entry.path) is not None
        and entry.path.split("/")[0] == entry.split
        and all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(entry.sha256, str)
        and isinstance(entry.provenance, dict)
    ):
        raise DataError(_MALFORMED)
    return entry


def note_path(folder: Path, shard: Shard) -> Path:
    """Where the note that a shard is finished lives."""
    return folder / PROGRESS / f"{Path(shard.path).with_suffix('.json').as_posix().replace('/', '-')}"


def write_note(folder: Path, shard: Shard, entry: Entry) -> None:
    """Remember that a shard is finished. Call it after the shard is on disk."""
    write_whole(note_path(folder, shard), seal(vars(entry)))


def finished_shards(folder: Path, shards: Sequence[Shard]) -> dict[str, Entry]:
    """Entries of the shards that are on disk and known to be whole, by path: from notes and from the manifest.

    Notes come first: a job that finishes the dataset writes the manifest before it removes them.
    """
    notes: dict[str, Entry] = {}
    for shard in shards:
        with suppress(FileNotFoundError, NotADirectoryError):
            notes[shard.path] = _entry(unseal(note_path(folder, shard)))
    manifest = (folder / MANIFEST).is_file()
    known = {entry.path: entry for entry in entries_of(read_manifest(folder))} if manifest else {}
    files = {path: folder / path for path in {**known, **notes}}
    sizes = {path: file.stat().st_size for path, file in files.items() if file.is_file()}
    return {path: entry for path, entry in {**known, **notes}.items() if sizes.get(path) == entry.size}


# Check a dataset's folder against its manifest: every bit of every file, and that the content makes sense.
#
# In this order, because each step makes the next one safe: the manifest's own seal, the list of files, size and sha256
# of every shard, and only for shards whose bytes are right their content: nothing that loading refuses (links, virtual
# datasets, unknown filters, missing chunks), then attributes, shapes, types and finite values.

DESCRIBED = ("dataset", "fields", "context_fields", "axes", "times", "counts")


@dataclass(frozen=True)
class Defect:
    """Something wrong with one file."""

    file: str
    what: str


@dataclass(frozen=True)
class Verification:
    """What was looked at and what was found. A dataset is fine if there are no findings."""

    folder: Path
    findings: tuple[Defect, ...]
    shards: int
    trajectories: Mapping[str, int]
    bytes: int

    @property
    def fine(self) -> bool:
        """Whether every bit is as it was written."""
        return not self.findings


def verify(folder: Path, *, report: Callable[[int, int], None] = lambda done, total: None) -> Verification:
    """Check a dataset. Nothing is changed. `report(done, total)` counts bytes.

    Raises `FileNotFoundError` if there is no dataset to check; everything else that is wrong is a finding.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder. Give the folder that holds {MANIFEST}.")
    if not (folder / MANIFEST).is_file():
        state = (
            "its generation is unfinished: run the same `ssno data generate` command again"
            if (folder / PROGRESS).exists()
            else "it was not made by `ssno data generate`"
        )
        raise FileNotFoundError(f"{folder} has no {MANIFEST}; {state}.")
    try:
        manifest = read_manifest(folder)
        entries = entries_of(manifest)
    except ValueError as error:
        return Verification(folder, (Defect(MANIFEST, str(error)),), 0, {}, 0)
    description = manifest[DESCRIPTION]
    findings = [*check_description(description, entries), *check_listing(folder, entries)]
    total, done = sum(entry.size for entry in entries), 0
    for entry in entries:
        findings += [Defect(entry.path, what) for what in check_shard(folder, entry, description)]
        done += entry.size
        report(done, total)
    trajectories: dict[str, int] = {
        split: sum(entry.count for entry in entries if entry.split == split) for split in SPLITS
    }
    return Verification(folder, tuple(findings), len(entries), trajectories, total)


def check_description(description: Mapping[str, Any], entries: list[Entry]) -> Iterator[Defect]:
    """The description says what there is, and the shards are all of it: no trajectory twice, none left out."""
    if absent := [key for key in DESCRIBED if key not in description]:
        yield Defect(MANIFEST, f"the description lacks: {', '.join(absent)}")
    counts = description.get("counts")
    counts = counts if isinstance(counts, dict) else {}
    for split in SPLITS:
        expected = 0
        for entry in (entry for entry in entries if entry.split == split):
            if entry.first != expected:
                yield Defect(MANIFEST, f"{entry.path} starts at trajectory {entry.first}, expected {expected}")
            expected = entry.first + entry.count
        if expected != counts.get(split, 0):
            yield Defect(MANIFEST, f"`{split}` has {expected} trajectories, not as described")


def check_listing(folder: Path, entries: list[Entry]) -> Iterator[Defect]:
    """Every listed file is there, a regular file inside the folder, and nothing else."""
    listed = {MANIFEST, *(entry.path for entry in entries)}
    there = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()
    }
    for path in sorted(there - listed):
        kind = "left behind by an interrupted writer" if path.endswith(".partial") else "not in the manifest"
        yield Defect(path, f"extra file, {kind}")
    for path in sorted(listed):
        if path not in there:
            yield Defect(path, "missing; run the generate command again to make it")
        elif why := why_not_regular(folder / path, folder):
            yield Defect(path, f"{why}; delete it and run the generate command again")


def check_shard(folder: Path, entry: Entry, description: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with one shard. Content is looked at only if the bytes are those that were written."""
    path = folder / entry.path
    if why_not_regular(path, folder):
        return  # reported by the listing
    if (size := path.stat().st_size) != entry.size:
        yield f"has {size} bytes instead of {entry.size}; delete it and run the generate command again"
        return
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != entry.sha256:
        yield "sha256 differs: the file was damaged or changed; delete it and run the generate command again"
        return
    try:
        if refused := contents_of(path, budget=0).refused:
            yield from (f"`{name}` {why}" for name, why in refused.items())
            return
        with h5py.File(path, "r") as file:
            yield from check_content(file, entry, description)
    except (OSError, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        yield f"cannot be read as a shard: {error}"


def check_content(file: h5py.File, entry: Entry, description: Mapping[str, Any]) -> Iterator[str]:
    """Attributes, shapes, types and values of an open shard, against the description."""
    axes = [Axis(**axis) for axis in description["axes"]]
    attributes = {
        "dataset_name": description["dataset"],
        "n_trajectories": entry.count,
        "n_spatial_dims": len(axes),
        "split": entry.split,
        "first_trajectory": entry.first,
    }
    attributes |= {name: description[name] for name in ("seed", "solver") if name in description}
    for name, expected in attributes.items():
        if (found := file.attrs.get(name)) != expected:
            yield f"attribute {name!r} is {found!r}, expected {expected!r}"
    dimensions = file["dimensions"]
    if list(dimensions.attrs["spatial_dims"]) != [axis.name for axis in axes]:
        yield f"axes are {list(dimensions.attrs['spatial_dims'])}, expected {[axis.name for axis in axes]}"
    times = np.array(description["times"])
    if dimensions["time"].shape != times.shape or not np.array_equal(dimensions["time"][:], times):
        yield "`dimensions/time` differs from the description"
    for axis in axes:  # coordinates of as many points as a manifest claims are made once the file has as many
        stored = dimensions[axis.name]
        if stored.shape != (axis.points,) or not np.array_equal(stored[:], axis.coordinates()):
            yield f"`dimensions/{axis.name}` differs from the description"
    names = [*description["fields"], *description["context_fields"]]
    if list(file["t0_fields"].attrs["field_names"]) != names:
        yield f"fields are {list(file['t0_fields'].attrs['field_names'])}, expected {names}"
    grid = tuple(axis.points for axis in axes)
    for name in names:
        frames = (len(description["times"]),) if file["t0_fields"][name].attrs["time_varying"] else ()
        yield from check_values(file["t0_fields"][name], (entry.count, *frames, *grid), (np.float32,))
    for scalar in file["scalars"].values():
        yield from check_values(scalar, (entry.count, *scalar.shape[1:]), (np.float64, np.int64))


def check_values(dataset: h5py.Dataset, shape: tuple[int, ...], dtypes: tuple[type, ...]) -> Iterator[str]:
    """Shape, type and, trajectory by trajectory, that all values are finite."""
    if dataset.shape != shape or dataset.dtype not in dtypes:
        yield f"`{dataset.name}` is {dataset.dtype} {dataset.shape}, expected {dtypes[0].__name__} {shape}"
        return
    values = Checked(dataset)
    for index in range(len(dataset)):
        if not np.isfinite(values[index : index + 1]).all():
            yield f"`{dataset.name}` is not finite in trajectory {index} of the file"
