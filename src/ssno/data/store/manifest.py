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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ssno.base.atomic_write import write_whole
from ssno.base.json_io import from_text, read_regular
from ssno.data.errors import DataError
from ssno.data.make.plan import Shard
from ssno.data.splits import Split

MANIFEST = "manifest.json"
PROGRESS = ".progress"
FORMAT = "ssno-dataset"
FORMAT_VERSION = 1
SEAL = "manifest_sha256"
DESCRIPTION = "recipe"
"""Key of what describes the data: an old name, kept because manifests are."""
SHARD_PATH = re.compile(r"(train|valid|test)/shard-[0-9]{3}\.h5")


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
    folder: Path, *, description: Mapping[str, Any], entries: Sequence[Entry], name: str | None = None
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
    return {path: entry for path, entry in {**known, **notes}.items() if _has_size(folder / path, entry.size)}


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
