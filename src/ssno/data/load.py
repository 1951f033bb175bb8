"""`load_dataset`: a name, a folder or a file becomes trajectories.

    load_dataset("ks", "train")                           ./data/ks-0.075-paper, as `ssno data generate ks` makes it
    load_dataset("1D_Burgers_Sols_Nu0.001.hdf5", "test")  a public file, with its published split and frames
    load_dataset("s3://bucket/ks-0.1-paper")              the same elsewhere (`ssno.data.remote`)
    load_dataset("my.npz", axes="batch time x y channel", dt=0.1, lengths=(1.0, 1.0))      your own

Nothing is read but the description of the files. Formats live in `ssno.data.readers`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ssno.base import read_regular, require_one_of
from ssno.data.context import NONE, choose_context
from ssno.data.datasets import DATASETS, PRESETS, find_folder_name, generate_command, split_name
from ssno.data.errors import DataError
from ssno.data.grids import How, Points, fitting
from ssno.data.manifest import MANIFEST, PROGRESS, entries_of, read_manifest
from ssno.data.readers.airfrans import open_airfrans
from ssno.data.readers.plain import cut_to_shortest, natural_order
from ssno.data.readers.public import chunks_of
from ssno.data.readers.registry import WHOLE, ReadOptions, examine, is_well, is_zarr, open_contents, read_options
from ssno.data.remote import listed
from ssno.data.sandbox.parent import check_regular, why_not_regular
from ssno.data.splits import FRACTIONS, SPLITS, holdout, split_trajectories
from ssno.data.trajectories import DEFAULT_LIMIT, NAN, Indices, Trajectories, concatenate
from ssno.data.windows import dataset_conventions

CALLED = {"train": ("train",), "valid": ("valid", "val", "validation"), "test": ("test",)}  # folders and files
SUFFIXES = {".h5", ".hdf5", ".nc", ".npz", ".npy", ".mat", ".csv", ".tsv"}


def load_dataset(
    name_or_path: str | Path,
    split: str = "train",
    *,
    root: str | Path = "data",
    preset: str | None = None,
    time_index: Indices | None = None,
    resolution: Points | None = None,
    reduction: How | None = "stride",
    segment: int | None = None,
    splits: Sequence[float | int] | None = None,
    limit: int = DEFAULT_LIMIT,
    **read: Any,
) -> Trajectories:
    """One split ("train", "valid", "test" or "all") of a generated dataset, a folder or a file.

    A name is looked up in `root`, at the given `preset` or the largest there. `time_index` and `resolution` default to
    what the literature uses for published and generated datasets (`ssno.data.windows`), and to everything of files
    of your own, whatever they are called; `slice(None)` takes every stored frame. With
    `reduction=None` any coarser periodic grid will do: every n-th point where that fits, else the band-limited part.
    A file that is not divided is divided by `splits` (fractions or counts, in stored order); without trajectories for
    validation, the last tenth of those for training is held out. `segment` first turns long runs into pieces of that
    many frames. The rest says what the file does not (`axes`, `fields`, `context`, `dt`, `periodic`, `viscosity`, ...):
    the fields of `ReadOptions` (`ssno.data.readers.registry`). `limit` is what one `read` may take, in bytes.
    """
    view = View(
        preset=preset,
        time_index=time_index,
        resolution=resolution,
        reduction=reduction,
        segment=segment,
        splits=splits,
        limit=limit,
    )
    return load_splits(name_or_path, (split,), view, read_options(**read), root=Path(root))[split]


@dataclass(frozen=True, kw_only=True)
class View:
    """Which part of stored trajectories to take: the options of `load_dataset` of the same names."""

    preset: str | None
    time_index: Indices | None
    resolution: Points | None
    reduction: How | None
    segment: int | None
    splits: Sequence[float | int] | None
    limit: int = DEFAULT_LIMIT

    def of(self, data: Trajectories) -> Trajectories:
        """The frames and points to use, in pieces."""
        usual, coarse = dataset_conventions(data.conventions), self.resolution
        if coarse is None and usual.resolution is not None and data.axes[0].points > usual.resolution:
            coarse = usual.resolution
        frames = usual.frames_of(len(data.times)) if self.time_index is None else self.time_index
        how = self.reduction or ("stride" if coarse is None else fitting(data.axes, coarse))
        data = replace(data, limit=self.limit).select(time_index=frames, resolution=coarse, reduction=how)
        return data if self.segment is None else data.cut(self.segment)


def load_splits(
    name_or_path: str | Path, wanted: Sequence[str], view: View, options: ReadOptions, *, root: Path = Path("data")
) -> dict[str, Trajectories]:
    """The `wanted` splits by name, opening each file once."""
    for split in wanted:
        require_one_of("split", split, (*SPLITS, WHOLE))
    path = find(name_or_path, root=root, preset=view.preset, viscosity=options.viscosity)
    if not (is_url(name_or_path) or Path(name_or_path).exists()):
        options = replace(options, viscosity=None)  # of generated data it says which, and was used to find them
    stored = {"test": ("test",), WHOLE: SPLITS}
    opened = tuple(dict.fromkeys(name for split in wanted for name in stored.get(split, ("train", "valid"))))
    is_folder = path.is_dir() and not is_zarr(path)
    try:
        found = open_folder(path, options, wanted=opened) if is_folder else open_any(path, options)
        return {split: _split_of(found, split, view.of, splits=view.splits, path=path) for split in wanted}
    except DataError as error:
        if is_url(name_or_path):
            raise DataError(str(error).replace(str(path), str(name_or_path))) from error
        raise


def _split_of(
    found: Mapping[str, Trajectories],
    split: str,
    view: Callable[[Trajectories], Trajectories],
    *,
    splits: Sequence[float | int] | None,
    path: Path,
) -> Trajectories:
    """One split of opened files, as `view` shows them."""
    if split == WHOLE:
        return view(concatenate(list(found.values())))
    if WHOLE in found and splits is None and (usual := dataset_conventions(found[WHOLE].conventions)).splits:
        whole = found[WHOLE]
        if len(whole) < usual.published:
            raise DataError(
                f"The published split of {whole.name!r} takes {usual.published} trajectories, {path} has {len(whole)}. "
                "Divide it yourself with `splits`."
            )
        found = {name: whole.select(indices=rows) for name, rows in usual.splits.items()}
    if split in ("train", "valid") and "train" in found and "valid" not in found:
        training = view(found["train"])
        rows = holdout(len(training))[split]
        if len(rows):
            return training.select(indices=rows)
    elif split in found:
        return view(found[split])
    if WHOLE not in found:
        raise DataError(f"{path} has no split {split!r}, only {', '.join(found)}.")
    pieces = view(found[WHOLE])
    return pieces.select(indices=split_trajectories(len(pieces), FRACTIONS if splits is None else splits)[split])


def is_url(name: str | Path) -> bool:
    """Whether a name has a protocol, as s3:// has."""
    return "://" in str(name)


def find(name_or_path: str | Path, *, root: Path, preset: str | None, viscosity: float | None) -> Path:
    """Where a dataset is. Raises `FileNotFoundError` with the command that would make it."""
    path = listed(str(name_or_path)) if is_url(name_or_path) else Path(name_or_path)
    if path.exists():
        return path
    name = str(name_or_path)
    if split_name(name)[0] not in DATASETS:
        known = ", ".join(DATASETS)
        raise FileNotFoundError(f"There is no file or folder {name!r}, and no dataset of that name ({known}).")
    options: dict[str, Any] = {} if viscosity is None else {"viscosity": viscosity}
    wanted: list[Any] = [preset] if preset else list(reversed(PRESETS))
    require_one_of("preset", wanted[0], PRESETS)
    folders = [root / find_folder_name(name, size, **options) for size in wanted]
    for folder in folders:
        if folder.is_dir():
            return folder
    there = sorted(folder.name for folder in root.glob(f"{name}-*") if folder.is_dir()) if root.is_dir() else []
    others = f" There is {', '.join(there)}, which other options name." if there else ""
    command = generate_command(name, wanted[0], out=None if str(root) == "data" else folders[0], **options)
    raise FileNotFoundError(f"There is no {folders[0]}.{others} Make it with: {command}")


def is_airfrans(folder: Path) -> bool:
    """Whether a folder has AirfRANS's list of cases."""
    manifest = folder / MANIFEST
    return manifest.is_file() and b'"full_train"' in read_regular(manifest)


def open_folder(folder: Path, options: ReadOptions, *, wanted: Sequence[str] = SPLITS) -> Mapping[str, Trajectories]:
    """Those `wanted` splits that a folder has: ours with its manifest, The Well's `train/*.hdf5`, or files named so.

    Validation may be called valid, val or validation.
    Files without a split in their names are runs of one set that is not divided, in the order of their numbers.
    """
    if is_airfrans(folder):
        return open_airfrans(folder)
    if (folder / MANIFEST).is_file():
        return _open_sealed(folder, options, wanted=wanted)
    if (folder / PROGRESS).exists():
        raise DataError(f"{folder} is not finished: run its `ssno data generate` command again, it continues.")
    root = folder
    if chunks := chunks_of(folder):
        for chunk in chunks:
            check_regular(chunk, root)
        return {WHOLE: concatenate([open_any(chunk, options)[WHOLE] for chunk in chunks])}
    own_name = folder.resolve().name
    inner = folder / "data"
    folder = inner if inner.is_dir() and any((inner / name).is_dir() for name in SPLITS) else folder
    loose = data_files(folder, root=root)
    files: dict[str, list[Path]] = {split: _files_of(folder, split, loose, root=root) for split in SPLITS}
    found = {
        split: _joined([_take(file, split, options) for file in files[split]], own_name, options)
        for split in wanted
        if files[split]
    }
    divided = any(files.values()) or any((folder / name).is_dir() for names in CALLED.values() for name in names)
    if loose and not divided:  # a file for each run, or for some runs
        runs = [open_any(file, options) for file in loose]
        if all(WHOLE in run for run in runs):
            return {WHOLE: _joined([run[WHOLE] for run in runs], own_name, options)}
    if not found:
        raise DataError(
            f"{folder} has no data of split {wanted[0]!r}: expected {wanted[0]}/*.h5, or files with {wanted[0]!r} in "
            "their names."
        )
    return found


def _files_of(folder: Path, split: str, loose: Sequence[Path], *, root: Path) -> list[Path]:
    """Files of a split: those in a folder called so, or else the `loose` ones with its name in theirs."""
    folders = [folder / name for name in CALLED[split] if (folder / name).is_dir()]
    if len(folders) > 1:
        raise DataError(f"{folders[0]} and {folders[1]} both have the name of the split {split!r}. Keep one of them.")
    # "val" may mean a value, unless there is something to validate.
    divided = any(name in _words(file) for name in ("train", "test") for file in loose)
    names = CALLED[split] if divided else (split,)
    inside = data_files(folders[0], root=root) if folders else []
    return inside or [file for file in loose if any(name in _words(file) for name in names)]


def _joined(sets: Sequence[Trajectories], name: str, options: ReadOptions) -> Trajectories:
    """Files of one set. Where only files have names, the set is called as its folder."""
    sets = [data if data.conventions else replace(data, name=name) for data in sets]
    return concatenate(sets if options.resample is None else cut_to_shortest(sets))


def _open_sealed(folder: Path, options: ReadOptions, *, wanted: Sequence[str]) -> Mapping[str, Trajectories]:
    """A dataset of ours. Its manifest lists the files with their sizes; `ssno data verify` checks their bytes."""
    entries = entries_of(read_manifest(folder))
    found: dict[str, list[Trajectories]] = {}
    for entry in entries:
        if entry.split not in wanted:
            continue
        path = folder / entry.path
        state = why_not_regular(path, folder)
        if state is None and (size := path.stat().st_size) != entry.size:
            state = f"has {size} bytes, expected {entry.size}"
        if state is not None:
            raise DataError(f"{path} {state}. Check the folder with `ssno data verify {folder}`.")
        # Sealed files were written whole and checksummed by us, so reading them through first is left out.
        (data,) = open_contents(examine(path, budget=0), options).values()
        found.setdefault(entry.split, []).append(data)
    if not found:
        there = ", ".join(sorted({entry.split for entry in entries})) or "none"
        raise DataError(f"{folder} has no split {wanted[0]!r}, only {there}.")
    return {name: concatenate(sets) for name, sets in found.items()}


def _take(file: Path, split: str, options: ReadOptions) -> Trajectories:
    """A split of a file that stands for it: everything, unless the file itself is divided."""
    found = open_any(file, options)
    if split not in found and WHOLE not in found:
        raise DataError(f"{file} has no split {split!r}, only {', '.join(found)}.")
    return found[split] if split in found else found[WHOLE]


def _words(file: Path) -> list[str]:
    return file.stem.lower().replace("-", "_").split("_")


def open_any(path: Path, options: ReadOptions) -> Mapping[str, Trajectories]:
    """Splits of a file."""
    return open_contents(examine(path), options)


def data_files(folder: Path, *, root: Path) -> list[Path]:
    """Data files of a folder in the order of their numbers: `part_2` before `part_10`. All must lie in `root`."""
    files = (path for path in folder.iterdir() if path.suffix in SUFFIXES)
    found = sorted(files, key=lambda path: natural_order(path.name))
    for path in found:
        check_regular(path, root)
    return found


def parse_index(text: str) -> slice:
    """A slice as it is written in Python: "0:140:7", "::10", "4:"."""
    try:
        numbers = [int(piece) if piece.strip() else None for piece in text.split(":")]
        if not 2 <= len(numbers) <= 3:
            raise ValueError
        return slice(*numbers)
    except ValueError:
        raise ValueError(f"`time_index` must be START:STOP:STEP, as 0:140:7 or ::10, got {text!r}.") from None


@dataclass(frozen=True, kw_only=True)
class DataOptions(ReadOptions):
    """Which trajectories, and how they are read."""

    name: str = "ks"
    """A dataset's name, looked up in ./data, or a file or folder of your own."""
    path: str | None = None
    """Folder or file to read instead of looking the name up."""
    preset: str | None = None
    """Size of a generated dataset: tiny, small or paper; by default the largest there is."""
    resolution: int | None = None
    """Coarsen the grid to this many points along the first axis, others in proportion; by default what the literature
    uses."""
    reduction: How = "stride"
    """How to coarsen: take every n-th point, average cells, or cut the spectrum."""
    time_index: str | None = None
    """Frames to use, start:stop:step; by default what the literature uses."""
    segment: int | None = None
    """Cut long runs into pieces of this many frames."""
    train: int | None = None
    """Use only this many training trajectories, the first ones."""
    valid: int | None = None
    """Use only this many validation trajectories, the first ones."""
    splits: tuple[float, ...] | None = None
    """Fractions or counts for train, valid, test when a file is not divided."""

    def load(self, split: str, *, resolution: Points | None = None) -> Trajectories:
        """The trajectories of a split, or the same on another grid; nothing is read but descriptions."""
        return self.load_splits(split, resolution=resolution)[0]

    def load_splits(self, *splits: str, resolution: Points | None = None) -> tuple[Trajectories, ...]:
        """Several splits, each file opened once."""
        fits = resolution is not None and self.reduction == "stride"
        view = View(
            preset=self.preset,
            time_index=None if self.time_index is None else parse_index(self.time_index),
            resolution=self.resolution if resolution is None else resolution,
            reduction=None if fits else self.reduction,
            segment=self.segment,
            splits=self.splits,
        )
        read = read_options(**{field.name: getattr(self, field.name) for field in fields(ReadOptions)})
        found = load_splits(self.path or self.name, splits, view, read)
        return tuple(self._first(split, found[split]) for split in splits)

    def _first(self, split: str, data: Trajectories) -> Trajectories:
        """As many trajectories as the options ask for."""
        count = {"train": self.train, "valid": self.valid}.get(split)
        if count is None:
            return data
        if not 1 <= count <= len(data):
            raise ValueError(f"`data.{split}` must lie between 1 and the {len(data)} trajectories there, got {count}.")
        return data.select(indices=range(count))


# Reading one more file as the first of its kind was read: what the user said once need not be said again.
#
#     same_options("today.h5", of_the_run, given)     axes, names, times, coordinates and mask as in training
#     with_fields(data, ("feed", "solid"), "solid") the context fields and the mask that a model was trained with
#
# Files in our own layout (forecasts, converted and generated datasets) describe themselves; of others the options of
# the first file hold, except those that the user gives anew.

RIVALS = (("dt", "times", "resample"), ("lengths", "coordinates"))
"""Options that say the same thing: one that is given anew replaces the others."""


def same_options(path: str | Path, own: ReadOptions, given: ReadOptions) -> ReadOptions:
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
    return is_well(examine(path, budget=0))


def with_fields(data: Trajectories, context: Sequence[str], mask: str | None) -> Trajectories:
    """The same trajectories with these context fields and this mask, if they are there; else as they are."""
    wanted = tuple(context)
    if data.context_fields != wanted and set(wanted) <= {*data.fields, *data.context_fields}:
        data = choose_context(data, wanted or NONE)
    if mask is not None and data.mask is None and mask in data.context_fields:
        data = data.masked(mask)
    elif mask == "mask" and (*data.context_fields, mask) == wanted:
        data = data.masked(NAN)
    return data
