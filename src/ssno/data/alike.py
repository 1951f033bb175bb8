"""Reading one more file as the first of its kind was read: what the user said once need not be said again.

    read_alike("today.h5", of_the_run, given)     axes, names, times, coordinates and mask as in training
    with_fields(data, ("feed", "solid"), "solid") the known fields and the mask that a model was trained with

Files in our own layout (forecasts, converted and generated datasets) describe themselves; of others the options of the
first file hold, except those that the user gives anew.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ssno.data.context import NONE, choose_context
from ssno.data.files.readers import well
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.files.readers.registry import examine
from ssno.data.files.readers.zarr import is_zarr
from ssno.data.load import data_files
from ssno.data.seeds import SPLITS
from ssno.data.store.manifest import MANIFEST
from ssno.data.trajectories import NAN, Trajectories

RIVALS = (("dt", "times", "resample"), ("lengths", "coordinates"))
"""Options that say the same thing: one that is given anew replaces the others."""


def read_alike(path: str | Path, own: ReadOptions, given: ReadOptions) -> ReadOptions:
    """What to say about the file or folder at `path`: what is `given`, and what was said about one's `own` data."""
    if in_our_layout(Path(path)):
        return given
    replaced = {name for rivals in RIVALS if given.given & set(rivals) for name in rivals}
    kept = own.given - given.given - replaced - {"viscosity"}  # which says of generated data which they are
    return replace(given, **{name: getattr(own, name) for name in kept})


def in_our_layout(path: Path) -> bool:
    """Whether data describe themselves: a dataset's name, a folder of ours, or files in the layout of The Well."""
    if not path.exists() or (path / MANIFEST).is_file():
        return True
    if path.is_dir() and not is_zarr(path):
        folders = [path, *(path / name for name in ("data", *SPLITS)), *(path / "data" / name for name in SPLITS)]
        files = [file for folder in folders if folder.is_dir() for file in data_files(folder, root=path)]
        return bool(files) and in_our_layout(files[0])
    return well.recognise(examine(path, budget=0))


def with_fields(data: Trajectories, context: Sequence[str], mask: str | None) -> Trajectories:
    """The same trajectories with these known fields and this mask, if they are there; else as they are."""
    wanted = tuple(context)
    if data.context_fields != wanted and set(wanted) <= {*data.fields, *data.context_fields}:
        data = choose_context(data, wanted or NONE)
    if mask is not None and data.mask is None and mask in data.context_fields:
        data = data.masked(mask)
    elif mask == "mask" and (*data.context_fields, mask) == wanted:
        data = data.masked(NAN)
    return data
