"""Files that are whole or absent, whatever happens in between: a kill, a full disk, two writers."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK_LIMITS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` under a `.partial` name, sync it to disk, then rename it to `path`.

    The partial name is unique, so two processes that write the same file never meet; the last rename wins. A
    kill may leave a partial file behind, which nothing ever reads.
    """
    partial = _partial(path)
    try:
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        _sync_folder(path.parent)
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
        _sync_folder(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _partial(path: Path) -> Path:
    """A new name beside `path`, which may name a file only."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name the file to write, as {path / 'NAME'}.")
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable: the entry of a file belongs to its folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
