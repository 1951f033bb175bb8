"""Trained checkpoints that come with the package, found by name where a model folder is expected.

    SSNO.from_pretrained("ks-0.1-64")          unless there is a folder ks-0.1-64 here: folders on disk come first

Each is an ordinary model folder (`ssno.models.pretrained`) in `ssno/pretrained`. They are made by
`ssno.evaluation.ship` and are never written to afterwards: results about them go to ./runs/pretrained/NAME.
"""

import re
from pathlib import Path

from ssno.base import did_you_mean

ROOT = Path(__file__).parents[1] / "pretrained"
RESULTS = Path("runs") / "pretrained"
NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")


def bundled_folders() -> dict[str, Path]:
    """The checkpoints that are there: their folders by name, sorted."""
    found = sorted(path.parent for path in ROOT.glob("*/config.json"))
    return {folder.name: folder for folder in found if NAME.fullmatch(folder.name)}


def resolve_checkpoint(folder: str | Path) -> Path:
    """The folder that is meant: one on disk, else the bundled checkpoint of that name.

    A name is looked up in the list of what is bundled and never joined to a path, so it cannot lead elsewhere. What
    has several parts, as runs/ks-ssno, is a path and is returned as it is, whether it exists or not.
    """
    path = Path(folder)
    if path.is_dir() or len(path.parts) != 1:
        return path
    known = bundled_folders()
    if path.name in known:
        return known[path.name]
    raise FileNotFoundError(
        f"`{folder}` holds no model: there is no such folder, and no trained checkpoint of that name comes with "
        f"ssno.{did_you_mean(path.name, known)} There are: {', '.join(known) or 'none'}."
    )


def results_folder(folder: Path) -> Path:
    """Where results about a model folder are written: into it, or for a bundled checkpoint ./runs/pretrained/NAME."""
    bundled = folder.resolve().parent == ROOT.resolve()
    return RESULTS / folder.resolve().name if bundled else folder
