"""Which files of a folder may be opened: regular ones that lie in it.

A pipe or a device makes whoever opens it wait, a link may lead anywhere. Somebody else's folder may hold either, under
any name, so its files are looked at here before they are opened.
"""

import os
import stat
from pathlib import Path

from ssno.data.errors import DataError


def why_not_regular(path: str | Path, folder: str | Path) -> str | None:
    """Why a file of a folder is not opened, or None if it may be. The folder itself may be reached by a link."""
    real, inside = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([real, inside]) != inside:
        return f"is a link out of {folder}, which is not followed: it may lead anywhere; replace it by the file"
    try:
        mode = os.stat(real).st_mode
    except OSError:
        return "is a link that leads nowhere" if os.path.islink(path) else "is missing"
    return None if stat.S_ISREG(mode) else "is not a regular file (a folder, a pipe or a device)"


def check_regular(path: str | Path, folder: str | Path) -> None:
    """Raise `DataError` if a file of a folder is not to be opened."""
    if why := why_not_regular(path, folder):
        raise DataError(f"{path} {why}.")
