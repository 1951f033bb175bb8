"""The files of a run folder, named here and nowhere else (tests/test_architecture.py).

config.json          what was trained: model, units, data, options, provenance
model.safetensors    the best weights
metrics.jsonl        the log, a line per epoch and for some steps; tensorboard/: the same for TensorBoard
last/, best/         checkpoints (`ssno.runs.checkpoint`); epoch-0010/, ... if the run keeps them
evaluation.json      what its forecasts are worth; report.html: the page about it; rollout/, inspect/: pictures
trial.json           what it gave as a trial of an experiment
"""

from collections.abc import Sequence
from pathlib import Path

from ssno.models.pretrained import CONFIG, WEIGHTS

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
    "epoch_folder",
    "evaluation_file",
    "is_run",
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
