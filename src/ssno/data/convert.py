"""Write any trajectories in our own layout: checksummed shards, a sealed manifest.

The new folder is filled under the name `OUT.partial` and renamed when it is whole, so an interrupted conversion is
never taken for a dataset. What it holds can be checked with `ssno data verify` and loaded like a generated dataset.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.context import context_is_constant
from ssno.data.errors import DataError
from ssno.data.manifest import (
    MANIFEST,
    MOST_SHARDS,
    PROGRESS,
    Entry,
    Shard,
    into_shards,
    most_per_shard,
    read_manifest,
    write_manifest,
)
from ssno.data.normalise import chunks
from ssno.data.readers.registry import WHOLE
from ssno.data.splits import SPLITS, split_trajectories
from ssno.data.storage import Layout, NotFinite, ShardEncoder
from ssno.data.trajectories import Trajectories

Report = Callable[[int, int], None]


def split_sets(sets: Mapping[str, Trajectories], sizes: tuple[float | int, ...]) -> dict[str, Trajectories]:
    """Train, valid and test: as the source has them, or by dividing its one set."""
    if WHOLE not in sets:
        return {split: data for split, data in sets.items() if len(data)}
    whole = sets[WHOLE]
    rows = split_trajectories(len(whole), sizes)
    return {split: whole.select(indices=rows[split]) for split in SPLITS if len(rows[split])}


def finite_only(data: Trajectories) -> Trajectories:
    """The trajectories that are finite everywhere, parameters included, found by reading them all."""
    fine = np.ones(len(data), dtype=bool)
    for parameter in data.parameters.values():
        fine &= np.isfinite(parameter).reshape(len(data), -1).all(axis=1)
    for chunk in chunks(data):
        for values in data.read(chunk, finite=False):
            fine[chunk] &= values.isfinite().flatten(1).all(1).numpy()
    return data.select(indices=np.flatnonzero(fine))


def plan_shards(sets: Mapping[str, Trajectories], per_shard: int | None) -> list[Shard]:
    """Files of the new dataset, at most 64 trajectories or 64 MiB each unless `per_shard` says otherwise."""
    size = per_shard or most_per_shard(next(iter(sets.values())))
    size = max(size, -(-max(len(part) for part in sets.values()) // MOST_SHARDS))
    return into_shards({split: len(data) for split, data in sets.items()}, size)  # type: ignore[misc]


def convert_data(
    sets: Mapping[str, Trajectories],
    out: Path,
    *,
    source: str,
    per_shard: int | None = None,
    report: Report = lambda done, total: None,
) -> list[Entry]:
    """Write the splits of a dataset to the new folder `out`. `report(done, total)` counts trajectories."""
    if out.exists():
        raise FileExistsError(f"{out} exists already; choose another name, or move it away.")
    if not any(len(data) for data in sets.values()):
        raise DataError(f"{source} has no trajectories to convert.")
    partial = out.with_name(f"{out.name}.partial")
    _clear(partial)
    partial.mkdir(parents=True)
    lock = _locked(partial)
    try:
        (partial / PROGRESS).mkdir()
        total, done = sum(len(data) for data in sets.values()), 0
        entries = []
        for shard in plan_shards(sets, per_shard):
            (partial / shard.path).parent.mkdir(exist_ok=True)
            data = encode(sets[shard.split], shard, name=out.name, source=source)
            write_whole(partial / shard.path, data)
            entries.append(Entry.of(shard, data, provenance()))
            done += shard.count
            report(done, total)
        write_manifest(partial, description=_description(sets, out.name, source), entries=entries, name=out.name)
        (partial / PROGRESS).rmdir()
        os.rename(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        os.close(lock)
    return entries


def encode(data: Trajectories, shard: Shard, *, name: str, source: str) -> bytes:
    """The file of one shard."""
    layout = Layout(
        name=name,
        fields=data.fields,
        axes=data.axes,
        times=data.times,
        context_fields=data.context_fields,
        geometry=data.geometry,
        units=data.units,
        attributes={
            "generator": "ssno data convert",
            "generator_version": provenance()["ssno"],
            "source": source,
            "split": shard.split,
            "first_trajectory": shard.first,
            **({} if data.mask is None else {"mask_field": data.mask}),
        },
    )
    encoder = ShardEncoder(layout, count=shard.count)
    constant = context_is_constant(data.select(indices=shard.trajectories))
    for number in shard.trajectories:
        state, context = (values[0].numpy() for values in data.read([number]))
        try:
            encoder.append(
                state,
                (context[:1] if constant else context) if data.context_fields else None,
                parameters={key: _number(values[number]) for key, values in data.parameters.items()},
            )
        except NotFinite as error:
            raise DataError(f"Trajectory {number} of `{shard.split}` is not finite at {error.place}.") from error
    return encoder.finish()


def _number(value: Any) -> np.ndarray:
    """Parameters are stored as float64 or int64."""
    array = np.asarray(value)
    return array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)


def _description(sets: Mapping[str, Trajectories], name: str, source: str) -> dict[str, Any]:
    data = next(iter(sets.values()))
    description = {
        "dataset": name,
        "source": source,
        "counts": {split: len(sets[split]) if split in sets else 0 for split in SPLITS},
        "fields": data.fields,
        "context_fields": data.context_fields,
        "axes": [asdict(axis) for axis in data.axes],
        "times": data.times.tolist(),
    }
    return json.loads(json.dumps(description))


def _clear(partial: Path) -> None:
    """Remove what an interrupted conversion left; anything else of that name is not ours to remove."""
    if not partial.exists():
        return
    name = partial.name.removesuffix(".partial")
    whole = (partial / MANIFEST).is_file() and read_manifest(partial).get("name") == name
    if any(partial.iterdir()) and not (partial / PROGRESS).is_dir() and not whole:
        raise FileExistsError(f"{partial} exists and is not the rest of a conversion; move it away.")
    lock = _locked(partial)
    try:
        shutil.rmtree(partial)
    finally:
        os.close(lock)


def _locked(partial: Path) -> int:
    """A handle that holds the folder for this conversion; the system lets go of it when the process ends."""
    handle = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        told = f"Another conversion is writing to {partial}. Wait for it, or choose another name."
        raise FileExistsError(told) from None
    return handle
