"""Files that are whole or absent, whatever happens in between: a kill, a full disk, two writers."""

import errno
import glob
import hashlib
import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DISK_LIMITS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers that mean a full disk, a quota or a file too large."""


def cache_folder() -> Path:
    """Where compiled libraries and fetched files are kept: $XDG_CACHE_HOME/ssno, by default ~/.cache/ssno."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssno"


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` under a `.partial` name, sync it to disk, then rename it to `path`.

    The partial name is unique, so two processes that write the same file never meet; the last rename wins. A
    kill may leave a partial file behind, which nothing ever reads and the next writer of the file deletes.
    """
    partial = _partial(path)
    try:
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno in DISK_LIMITS:
            raise OSError(
                f"No room to write {len(data)} bytes to {path} ({error.strerror}). Files already there are "
                "whole: free some space and run the same command again; it continues."
            ) from error
        raise


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Lend a `.partial` name to write to, bit by bit; when the block ends without an error it becomes `path`.

    For files too large to be built in memory, or written by others.
    """
    partial = _partial(path)
    try:
        yield partial
        handle = os.open(partial, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(partial, path)
        sync_folder(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


PARTIAL = re.compile(r"\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.partial")
"""The end of a partial name: the machine, the process that writes, and a random number."""


def _partial(path: Path) -> Path:
    """A new name beside `path`, which may name a file only; what killed processes left there is deleted."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name the file to write, as {path / 'NAME'}.")
    for left in path.parent.glob(f"{glob.escape(path.name)}.*.partial"):
        known = PARTIAL.fullmatch(left.name.removeprefix(path.name))
        if known and known[1] == _machine() and not _is_running(int(known[2])):
            left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.partial")


@cache
def _machine() -> str:
    """This machine, or the container on it whose processes have numbers of their own."""
    numbers = Path("/proc/self/ns/pid")
    inside = os.readlink(numbers) if numbers.is_symlink() else ""
    return hashlib.sha256(f"{platform.node()} {inside}".encode()).hexdigest()[:8]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # of another user
    return True


def sync_folder(folder: Path) -> None:
    """Make a rename durable: the entry of a file belongs to its folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Whether a file that a user names may be replaced: only by its like, and only if ssno wrote it.
#
# Pages, tables and pictures are made again and again under one name, so an earlier one gives way without a question.
# Any other file of that name (data, a config, a paper) is somebody's work and stays.

ENDS = 2**14
"""Bytes at either end of a file that are looked at."""


@dataclass(frozen=True)
class Kind:
    """What a command writes: its name in words, and what the first or last bytes of every such file match."""

    words: str
    mark: re.Pattern[bytes]


def check_replaceable(path: Path, kind: Kind, *, option: str) -> None:
    """Refuse to replace what is not an earlier file of this kind; `option` named it. A new or empty file is free."""
    if not path.exists():
        return
    if not path.is_file():
        raise FileExistsError(
            f"`{option}` must name a file to write, but {path} is a folder, a pipe or a device. Name a file."
        )
    if path.stat().st_size and not kind.mark.search(_ends(path)):
        raise FileExistsError(
            f"{path} exists and is not {kind.words} that ssno wrote, so `{option}` does not replace it. Choose another "
            "name, or move it away."
        )


def _ends(path: Path) -> bytes:
    with open(path, "rb") as file:
        first = file.read(ENDS)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(first), size - ENDS))
        return first + file.read()
