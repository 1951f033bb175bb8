"""Symbolic links inside a run folder, which may come from anybody: nothing is written or deleted where they lead.

The folder itself may be a link, it was named by the user. Links that stay inside it are harmless (wandb makes some).
"""

import os
from pathlib import Path

from ssno.models.bundled import results_folder
from ssno.runs.saved import run_folder_of


def refuse_links(folder: Path) -> None:
    """Refuse a run folder with a link out of it, before anything is written there."""
    home = os.path.realpath(folder)
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            if path.is_symlink() and os.path.commonpath([home, os.path.realpath(path)]) != home:
                raise ValueError(
                    f"{path} is a link out of its run folder, to {os.readlink(path)}. Nothing is written there: "
                    "replace the link by what it leads to, or delete it."
                )


def folder_for(run: Path, name: str) -> Path:
    """Where pictures about a run or one of its checkpoints go, unless the user names a place."""
    refuse_links(results_folder(run_folder_of(run)))
    return results_folder(run) / name
