"""The files of a run folder, named here and nowhere else (tests/test_architecture.py), and who may write there.

config.json          what was trained: model, units, data, options, provenance
model.safetensors    the best weights
metrics.jsonl        the log, a line per epoch and for some steps; tensorboard/: the same for TensorBoard
last/, best/         checkpoints (`ssno.runs.checkpoint`); epoch-0010/, ... if the run keeps them
evaluation.json      what its forecasts are worth; report.html: the page about it; rollout/, inspect/: pictures
trial.json           what it gave as a trial of an experiment
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ssno.models.pretrained import CONFIG, WEIGHTS
from ssno.runs.checkpoint import INDEX, has_checkpoint

LOG, BOARD = "metrics.jsonl", "tensorboard"
LOCK = ".lock"
LAST, BEST = "last", "best"
ROLLOUT, INSPECT = "rollout", "inspect"
TRIAL = "trial.json"

__all__ = [
    "BEST",
    "BOARD",
    "CONFIG",
    "INSPECT",
    "LAST",
    "LOCK",
    "LOG",
    "ROLLOUT",
    "TRIAL",
    "WEIGHTS",
    "claimed",
    "clear",
    "epoch_folder",
    "evaluation_file",
    "is_run",
    "refuse_links",
    "report_file",
]


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

LEFT_BY_A_KILL = [f"{name}.*.partial" for name in (CONFIG, WEIGHTS, LOG, f"*/{INDEX}", "*/tensors-*")]


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
