"""The files of a run folder, named here and nowhere else (tests/test_architecture.py); who may write; checkpoints.

config.json          what was trained: model, units, data, options, provenance
model.safetensors    the best weights
climatology.safetensors   the mean of the training trajectories, frame by frame
metrics.jsonl        the log, a line per epoch and for some steps; tensorboard/: the same for TensorBoard
last/, best/         checkpoints (below); epoch-0010/, ... if the run keeps them
evaluation.json      what its forecasts are worth; report.html: the page about it; rollout/, inspect/: pictures
trial.json           what it gave as a trial of an experiment
"""

import fcntl
import hashlib
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from ssno.base import DocumentError, description_from_json, read_document, read_regular, write_document, write_whole
from ssno.models.pretrained import CONFIG, WEIGHTS, as_safetensors

LOG, BOARD = "metrics.jsonl", "tensorboard"
CLIMATOLOGY = "climatology.safetensors"
LOCK = ".lock"
LAST, BEST = "last", "best"
ROLLOUT, INSPECT = "rollout", "inspect"
TRIAL = "trial.json"
INDEX = "checkpoint.json"


def is_run(folder: Path) -> bool:
    """Whether a run has been described in `folder`."""
    return (folder / CONFIG).is_file()


def epoch_folder(epoch: int) -> str:
    """Where the checkpoint after so many epochs is kept: epoch-0010."""
    return f"epoch-{epoch:04d}"


def evaluation_file(different: Sequence[str] = ()) -> str:
    """evaluation.json, or evaluation-valid-128.json with the words for what is different about it."""
    return "-".join(["evaluation", *different]) + ".json"


def report_file(about: Sequence[str] = ()) -> str:
    """report.html in the folder of a run; report-A-B.html if it is about several."""
    return "-".join(["report", *about]) + ".html"


# Symbolic links inside a run folder, which may come from anybody: nothing is written or deleted where they lead.
#
# The folder itself may be a link, it was named by the user. Links that stay inside it are harmless (wandb makes some).


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


# Taking a run folder for oneself: nothing is lost by it, and no second training writes there meanwhile.
#
# The lock is the operating system's (flock on `.lock`): it ends with the process that holds it, however that ends, so
# the lock of a killed training never stands in the way of the next.

LEFT_BY_A_KILL = [f"{name}.*.partial" for name in (CONFIG, WEIGHTS, CLIMATOLOGY, LOG, f"*/{INDEX}", "*/tensors-*")]


@contextmanager
def claimed(folder: Path | None, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold `folder` for a run: free for it, or with a run to go on with. Without a folder there is nothing to hold.

    An earlier run that `overwrite` allows to delete is still there: `clear` deletes it, when nothing else can be
    refused.
    """
    if resume and overwrite:
        raise ValueError("`resume` and `overwrite` exclude each other: go on with the old run, or delete it.")
    if folder is None:
        if resume:
            raise ValueError("`resume` needs the `folder` of the run to go on with.")
        yield
        return
    if resume and not is_run(folder):
        raise FileNotFoundError(f"There is nothing to resume in {folder}: it holds no run.")
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links(folder)
    with _removed_if_empty(made), _locked(folder):
        for left in LEFT_BY_A_KILL:  # what only trainings write, so nobody else can be writing it now
            for partial in folder.glob(left):
                partial.unlink()
        if not resume:
            _check_free(folder, overwrite=overwrite)
        elif not has_checkpoint(folder / LAST) and any((folder / part).exists() for part in (BEST, LOG)):
            raise FileNotFoundError(f"There is nothing to resume in {folder}: it has no `last` checkpoint.")
        yield


@contextmanager
def _removed_if_empty(made: Sequence[Path]) -> Iterator[None]:
    """Take folders that were made for a run away again, the inner ones first, if nothing is in them at the end."""
    try:
        yield
    finally:
        for place in made:
            with suppress(OSError):  # not empty
                place.rmdir()


def clear(folder: Path) -> None:
    """Delete the earlier run in a folder that is held."""
    for path in sorted(_inside(folder), key=lambda path: path.name == CONFIG):  # the mark of a run goes last
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder with something in it, unless that is a run and may be deleted."""
    inside = _inside(folder)
    if inside and not overwrite:
        raise FileExistsError(
            f"{folder} is not empty. Go on with that run (--resume always), delete it (--overwrite), or choose another "
            "name."
        )
    if inside and not is_run(folder):
        raise FileExistsError(f"{folder} is not a run of ssno, so it is not overwritten. Choose another name.")


def _inside(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != LOCK]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    path = folder / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 20).decode(errors="replace") or "unknown"
            os.close(handle)
            raise FileExistsError(
                f"Another training (process {holder}) is writing to {folder}. Wait for it, or choose another name."
            ) from None
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            break
        os.close(handle)  # whoever held it has just taken the file away
    try:
        os.truncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


# Checkpoints: everything a run needs to go on exactly where it was. No pickle.
#
# A checkpoint is a folder with two files:
#
#     tensors-STEP-DIGEST.safetensors   weights, optimiser state, averaged weights
#     checkpoint.json                   progress, and the name, size and sha256 of the tensors file
#
#     {"format": "ssno-checkpoint", "version": 1, "tensors": {"file", "bytes", "sha256"}, "progress": {...}}
#
# A tensors file is named after its content, so no save ever touches the file of the checkpoint before. The JSON is
# written last and replaced in one rename: at that moment a checkpoint comes to exist. A kill before it leaves the
# previous one whole; a kill after it leaves at most an old tensors file, which the next save removes.

FORMAT, VERSION = "ssno-checkpoint", 1
REMEDY = "Take another checkpoint of the run."
LARGEST = 2**36
"""Bytes of tensors that are read at most."""


@dataclass(frozen=True)
class Progress:
    """Where a run is: the next batch to train on, and what has been seen so far."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss_count: float = 0.0
    best: float = float("inf")
    best_epoch: int = -1
    stale: int = 0
    finished: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("epoch", 0), ("batch", 0), ("step", 0), ("stale", 0), ("best_epoch", -1)):
            if not least <= getattr(self, name) < 2**63:
                raise ValueError(f"`progress.{name}` must be at least {least}, got {getattr(self, name)}.")


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], progress: Progress) -> None:
    """Replace the checkpoint in `folder`, or leave the old one untouched. What others linked there is not ours."""
    if folder.is_symlink():
        raise ValueError(f"{folder} is a link, to {os.readlink(folder)}. Checkpoints are written to real folders only.")
    folder.mkdir(parents=True, exist_ok=True)
    content = as_safetensors(tensors)
    digest = hashlib.sha256(content).hexdigest()
    name = f"tensors-{progress.step:08d}-{digest[:16]}.safetensors"
    write_whole(folder / name, content)
    index = {"tensors": {"file": name, "bytes": len(content), "sha256": digest}, "progress": asdict(progress)}
    write_document(folder / INDEX, index, format=FORMAT, version=VERSION)
    for old in folder.glob("tensors-*.safetensors*"):
        if old.name != name:
            old.unlink(missing_ok=True)


def has_checkpoint(folder: Path) -> bool:
    """Whether a checkpoint was saved in `folder`."""
    return (folder / INDEX).is_file()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], Progress]:
    """The tensors of a checkpoint, their checksum verified, and its progress."""
    index = _read_index(folder)
    described = index["tensors"]
    path = folder / Path(str(described["file"])).name
    try:
        content = read_regular(path, limit=LARGEST)
    except FileNotFoundError:
        raise FileNotFoundError(f"The checkpoint in {folder} lacks {path.name}. {REMEDY}") from None
    if hashlib.sha256(content).hexdigest() != described["sha256"]:
        raise DocumentError(f"{path} does not match its checksum: it was damaged after it was written. {REMEDY}")
    try:
        return safetensors.torch.load(content), _progress(index, folder)
    except safetensors.SafetensorError as error:
        raise DocumentError(f"{path} is not a readable safetensors file ({error}). {REMEDY}") from None


def read_progress(folder: Path) -> Progress:
    """How far a checkpoint is, without its tensors."""
    return _progress(_read_index(folder), folder)


def _progress(index: Mapping[str, Any], folder: Path) -> Progress:
    values = dict(index["progress"])
    values["best"] = math.inf if values.get("best") is None else values["best"]
    try:
        return description_from_json(Progress, values, where="progress.")
    except ValueError as error:
        raise DocumentError(f"The progress of the checkpoint in {folder} is damaged: {error} {REMEDY}") from None


def _read_index(folder: Path) -> dict[str, Any]:
    try:
        index = read_document(folder / INDEX, format=FORMAT, versions=(VERSION,), remedy=REMEDY)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no checkpoint in {folder}.") from None
    tensors, progress = index.get("tensors"), index.get("progress")
    if not (isinstance(tensors, dict) and {"file", "sha256"} <= tensors.keys() and isinstance(progress, dict)):
        raise DocumentError(f"{folder / INDEX} is not complete. {REMEDY}")
    return index
