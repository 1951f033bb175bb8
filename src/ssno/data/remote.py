"""Data in object storage: a URL that fsspec knows (s3://, gs://, https://, ...) in place of a folder or file.

    load_dataset("s3://bucket/ks-0.1-paper")      listed once; each file is fetched when something of it is first read

A listing becomes a folder of empty files of the right sizes, so that splits, names and order are found as on a disk.
Files are fetched whole into a cache, $XDG_CACHE_HOME/ssno/remote, under names that nobody else chooses, and from there
they are examined in the sandbox as any foreign file. Those not used for longest are deleted when the cache becomes
larger than $SSNO_CACHE_GB (50), except what was used within the last minute.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from ssno.base import byte_size
from ssno.base.atomic_write import cache_folder
from ssno.data.errors import DataError
from ssno.data.readers.arrays import STAND_INS, Stamp

SWITCH, USUAL_GB = "SSNO_CACHE_GB", "50"
PIECE = 8 * 2**20
SMALL = 64 * 2**20  # bytes of a manifest, which is fetched at once
IN_USE = 60.0  # seconds


@dataclass(frozen=True)
class RemoteStamp(Stamp):
    """A file at a URL; its copy in the cache is at `path`, under a name that says which version it is."""

    url: str
    most_open: ClassVar[int] = 4  # an open file keeps its place on the disk when it is deleted

    @property
    def shown(self) -> Path:
        return Path(self.url)

    def check(self) -> None:
        """See to it that the copy is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_suffix(".lock"), "w") as lock:  # of several processes one fetches
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.path.exists():
                os.utime(self.path)
            else:
                make_room(self.path.parent, self.size)
                fetch(self.url, self.path, size=self.size)


@lru_cache(maxsize=64)
def listed(url: str) -> Path:
    """A folder of empty files (or one) for what there is at a URL. Raises `FileNotFoundError`, `DataError`."""
    system, root = open_system(url)
    try:
        found: dict[str, Any] = system.find(root, detail=True) if system.exists(root) else {}
    except Exception as error:  # every system has exceptions of its own
        raise DataError(f"{url} cannot be listed: {type(error).__name__}: {error}.") from error
    if not found:
        raise FileNotFoundError(f"There is nothing at {url}.")
    place = Path(tempfile.mkdtemp(prefix="ssno-remote-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    name = PurePosixPath(root).name or "remote"
    for path, about in sorted(found.items()):
        about = about or system.info(path)  # of a file that is the URL itself nothing is listed
        inner = PurePosixPath(path).relative_to(root) if path != root else PurePosixPath()
        if ".." in inner.parts or name == "..":
            raise DataError(f"{url} lists {path!r}, which leads out of it.")
        if inner.name in ("zarr.json", ".zarray", ".zgroup"):
            raise DataError(f"{url} holds a Zarr store, which is read from a disk only. Copy it there, or store HDF5.")
        local, size = place / name / inner, int(about["size"] or 0)
        local.parent.mkdir(parents=True, exist_ok=True)
        if local.suffix == ".json":
            if size > SMALL:
                raise DataError(f"{system.unstrip_protocol(path)} has {size} bytes, too many for a description.")
            fetch(system.unstrip_protocol(path), local, size=size)
            continue
        with open(local, "wb") as file:
            file.truncate(size)
        version = sha256(repr((system.unstrip_protocol(path), sorted(about.items()))).encode()).hexdigest()
        copy = cache_folder() / "remote" / f"{version}{local.suffix.lower()}"
        STAND_INS[local.resolve()] = RemoteStamp(copy, size, 0, 0, system.unstrip_protocol(path))
    return place / name


def open_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"{url}: URLs need the package fsspec: pip install 'ssno[remote]'") from error
    try:
        return fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise ImportError(f"{url}: {error}") from error
    except ValueError as error:
        raise DataError(f"{url} is no URL that can be read: {error}.") from error


def fetch(url: str, target: Path, *, size: int) -> None:
    """Copy a remote file of so many bytes, all of it or nothing."""
    system, path = open_system(url)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    copied = 0
    try:
        with system.open(path, "rb") as source, open(partial, "wb") as file:
            while copied <= size and (piece := source.read(PIECE)):
                copied += len(piece)
                file.write(piece)
        if copied != size:
            raise DataError(
                f"{url} gave {'more' if copied > size else 'fewer'} bytes than the {size} that were listed."
            )
        os.replace(partial, target)
    except DataError:
        raise
    except Exception as error:  # every system has exceptions of its own
        raise DataError(f"{url} cannot be fetched: {type(error).__name__}: {error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def make_room(folder: Path, size: int) -> None:
    """Delete what was not used for longest until `size` more bytes fit into the cache."""
    text = os.environ.get(SWITCH, USUAL_GB)
    try:
        limit = float(text) * 1e9
    except ValueError:
        raise DataError(f"{SWITCH} must be a number of gigabytes, got {text!r}.") from None
    there = sorted(
        (file.stat().st_mtime, file.stat().st_size, file) for file in folder.iterdir() if file.suffix != ".lock"
    )
    total = size + sum(bytes_ for _, bytes_, _ in there)
    for used, bytes_, file in there:
        if total <= limit or time.time() - used < IN_USE:
            break
        file.unlink(missing_ok=True)
        total -= bytes_
    free = shutil.disk_usage(folder).free
    if size > free:
        raise DataError(f"{folder} has room for {byte_size(free)}, {byte_size(size)} are needed. Lower {SWITCH}.")
