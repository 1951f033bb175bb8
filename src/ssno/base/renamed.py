"""Names of options before version 0.2: files written then stay readable, and the error for an old name has the new one.

Dotted names are those of a run's description (`train.noise_std`), of a model's (`model.modes.dt_min`) and of a
forecaster's (`forecaster.context_time`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

FIELDS = {
    "data.points": "data.resolution",
    "data.cut": "data.segment",
    "train.clip": "train.grad_clip",
    "train.noise": "train.noise_std",
    "train.mirror": "train.reflect",
    "train.increment": "train.predict_increment",
    "train.points": "train.points_per_step",
    "train.workers": "train.num_workers",
    "train.rollout": "train.unroll",
    "train.rollout.forcing": "train.unroll.teacher_forcing",
    "train.rollout.cut": "train.unroll.truncate",
    "train.rollout.recompute": "train.unroll.gradient_checkpointing",
    "model.modes.smallest_step": "model.modes.dt_min",
    "model.modes.largest_step": "model.modes.dt_max",
    "model.modes.starting_norm": "model.modes.kernel_init_norm",
    "model.modes.transfer": "model.modes.resolution_transfer",
    "alignment": "context_time",
    "forecaster.alignment": "forecaster.context_time",
    "forecaster.increment": "forecaster.predict_increment",
}
VALUES = {
    "model.boundary": {
        "wrapped": "periodic",
        "one-period": "periodic-truncated",
        "even": "neumann",
        "odd": "dirichlet",
    },
    "model.modes.resolution_transfer": {"band": "spectrum", "sampled": "resample"},
    "context_time": {"same": "input"},
    "forecaster.context_time": {"same": "input"},
}
FLAGS = {
    "data generate": {"--workers": "--jobs", "--points": "--resolution"},
    "data animate": {"--index": "--trajectories", "--points": "--resolution"},
    "data convert": {"--points": "--resolution", "--cut": "--segment"},
    "data inspect": {"--everything": "--no-sample"},
    "train": {"--processes": "--nproc"},
    "sweep": {"--workers": "--jobs"},
    "evaluate": {"--trajectories": "--max-trajectories", "--points": "--resolution"},
    "predict": {"--indices": "--trajectories", "--points": "--resolution"},
    "rollout": {"--index": "--trajectories", "--points": "--resolution"},
    "report": {"--points": "--resolution"},
    "reproduce": {"--until": "--stop-at", "--cores": "--jobs", "--so-far": "--partial"},
}
"""Options of single commands."""


def with_new_names(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """A description written before 0.2 in the words of this version. `where` is the dotted name of `values` itself."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        new = FIELDS.get(f"{where}{key}", f"{where}{key}")
        if isinstance(value, Mapping):
            value = with_new_names(value, f"{where}{key}.")
        elif isinstance(value, list):
            value = [new_value(new, one) for one in value]
        found[new.removeprefix(where) if new.startswith(where) else new.rpartition(".")[2]] = new_value(new, value)
    return found


def new_value(name: str, value: Any) -> Any:
    """What a value of this option is called now."""
    return VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value


def check_flags(command: str, words: Sequence[str]) -> None:
    """Refuse options and values on a command line that have another name now."""
    if command == "reproduce" and ("--scale=night" in words or ("--scale", "night") in pairwise(words)):
        raise ValueError("The scale 'night' is called 'tenth' now: a tenth of the published training.")
    renamed = {**FLAGS.get(command, {}), **(_field_flags() if command == "train" else {})}
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if new := renamed.get(option):
            raise ValueError(f"`ssno {command}` has no `{option}` any more: use `{new}`.")
        old = value if equals else following
        name = option.removeprefix("--").replace("-", "_")
        if command == "train" and (now := VALUES.get(name, {}).get(old)):
            raise ValueError(f"`{option} {old}` is called `{option} {now}` now.")


def _field_flags() -> dict[str, str]:
    flags = {_flag(old): _flag(new) for old, new in FIELDS.items() if not old.startswith("forecaster.")}
    return {**flags, "--train.no-increment": "--train.no-predict-increment"}


def _flag(name: str) -> str:
    return f"--{name}".replace("_", "-")
