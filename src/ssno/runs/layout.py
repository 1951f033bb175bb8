"""The files of a run folder, named in one place.

config.json          what was trained: model, units, data, options, provenance
model.safetensors    the best weights
metrics.jsonl        the log, a line per epoch and for some steps
last/, best/         checkpoints (`ssno.runs.checkpoint`); epoch-0010/, ... if the run keeps them
evaluation.json      what its forecasts are worth; report.html: the page about it
"""

from pathlib import Path

from ssno.models.pretrained import CONFIG, WEIGHTS

LOG = "metrics.jsonl"
LOCK = ".lock"
LAST, BEST = "last", "best"
EVALUATION = "evaluation"
"""`evaluation.json`, and others whose names begin so (`ssno.evaluation.record.file_name`)."""
REPORT = "report.html"

__all__ = ["BEST", "CONFIG", "EVALUATION", "LAST", "LOCK", "LOG", "REPORT", "WEIGHTS", "is_run"]


def is_run(folder: Path) -> bool:
    """Whether a run has been described in `folder`."""
    return (folder / CONFIG).is_file()
