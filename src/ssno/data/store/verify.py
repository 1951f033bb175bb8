"""Check a dataset's folder against its manifest: every bit of every file, and that the content makes sense.

In this order, because each step makes the next one safe: the manifest's own seal, the list of files, size and sha256
of every shard, and only for shards whose bytes are right their content: nothing that loading refuses (links, virtual
datasets, unknown filters, missing chunks), then attributes, shapes, types and finite values.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ssno.data.files.sandbox.hdf5 import Checked
from ssno.data.files.sandbox.parent import contents_of, why_not_regular
from ssno.data.splits import SPLITS
from ssno.data.store.manifest import DESCRIPTION, MANIFEST, PROGRESS, Entry, entries_of, read_manifest
from ssno.pde.problems.problem import Axis

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
        yield Defect(MANIFEST, f"the description does not say: {', '.join(absent)}")
    counts = description.get("counts")
    counts = counts if isinstance(counts, dict) else {}
    for split in SPLITS:
        expected = 0
        for entry in (entry for entry in entries if entry.split == split):
            if entry.first != expected:
                yield Defect(MANIFEST, f"{entry.path} starts at trajectory {entry.first}, expected {expected}")
            expected = entry.first + entry.count
        if expected != counts.get(split, 0):
            yield Defect(MANIFEST, f"`{split}` has {expected} trajectories, the description says otherwise")


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
