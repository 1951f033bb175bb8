"""Earlier names of options: files written then stay readable, and the error for an old name has the new one.

Dotted names are those of a run's description (`train.noise_std`), of a model's (`model.modes.dt_min`), of a
forecaster's (`forecaster.context_time`) and of a dataset's manifest (`options.wall_layer`).
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
    "model.memory_window": "model.memory.window",
    "model.memory_d_state": "model.memory.d_state",
    "model.memory_kernel": "model.memory.kernel",
    "model.coordinate_axes": "model.coordinates",
    "model.idle_forecast": "model.block.idle_forecast",
    "window.given": "window.input_frames",
    "forecaster.window.given": "forecaster.window.input_frames",
    "alignment": "context_time",
    "forecaster.alignment": "forecaster.context_time",
    "forecaster.increment": "forecaster.predict_increment",
}
VALUES = {
    "model.model": {"foreign": "wrapped"},
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
REMOVED: dict[str, tuple[Any, ...]] = {
    "model.memory_position": (None,),
    "model.smallest_steps": ([], ()),
    "model.largest_steps": ([], ()),
    "model.dropout": (0.05, 0.0),  # of GKT, whose tiny size had none; predictions do not depend on it
    "model.inner_dropout": (0.025, 0.0),
    "model.always_drop_attention": (False,),
    "model.expansion": (2,),
    "model.mlp_ratio": (2,),
    "model.colatitude": ("pole",),
    "model.band_limited": (True,),
    "window.loss_on": ("last",),
    "forecaster.window.loss_on": ("last",),
    "options.perturbation": ("angular",),  # of datasets
    "options.wall_layer": (0.0,),
}
"""Options that are gone, with the values that are built in now: files with these values are read without them."""
SPHERE_REMOVED = {"boundary": ("periodic", "wrapped"), "conditioning": ("planes",), "residual": ("sum",)}
"""The same for the model ssno-sphere, where other models still have these options."""
FLAGS = {
    "data generate": {"--workers": "--jobs", "--points": "--resolution"},
    "data animate": {"--index": "--trajectories", "--points": "--resolution"},
    "data convert": {"--points": "--resolution", "--cut": "--segment"},
    "data inspect": {"--everything": "--no-sample"},
    "train": {"--processes": "--nproc"},
    "sweep": {"--workers": "--jobs"},
    "evaluate": {"--trajectories": "--max-trajectories", "--points": "--resolution"},
    "predict": {"--indices": "--trajectories", "--points": "--resolution", "--given": "--input-frames"},
    "rollout": {"--index": "--trajectories", "--points": "--resolution"},
    "report": {"--points": "--resolution"},
    "reproduce": {"--until": "--stop-at", "--cores": "--jobs", "--so-far": "--partial"},
}
"""Options of single commands."""


def with_new_names(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """A description of an earlier version in today's words. `where` is the dotted name of `values` itself."""
    found: dict[str, Any] = {}
    for key, value in (_model(values) if where == "model." else values).items():
        name = f"{where}{key}"
        if name in REMOVED:
            _check_removed(name, value, REMOVED[name])
            continue
        new = FIELDS.get(name, name)
        if isinstance(value, Mapping):
            value = with_new_names(value, f"{name}.")
        elif isinstance(value, list):
            value = [new_value(new, one) for one in value]
        *outer, last = (new.removeprefix(where) if new.startswith(where) else new.rpartition(".")[2]).split(".")
        place = found
        for step in outer:
            place = place.setdefault(step, {})
        place[last] = new_value(new, value)
    return found


def _model(values: Mapping[str, Any]) -> dict[str, Any]:
    """What depends on the kind of model, or on two options together."""
    values, kind = dict(values), values.get("model", "ssno")
    if kind == "ssno-sphere":
        for key, harmless in SPHERE_REMOVED.items():
            if key in values:
                _check_removed(f"model.{key}", values.pop(key), harmless)
    elif kind in ("ssno", "ssno-selective") and "residual" in values:
        values["block"] = {"residual": values.pop("residual")}
    axes = values.pop("coordinate_axes", None)
    if axes is not None and values.get("coordinates", True):
        values["coordinates"] = axes
    return values


def _check_removed(name: str, value: Any, harmless: tuple[Any, ...]) -> None:
    if value not in harmless:
        raise ValueError(
            f"`{name}` is {value!r}, but this option was removed in version 0.2 and is always {harmless[0]!r} now. "
            "Use ssno 0.1 for this file."
        )


def advice(name: str) -> str | None:
    """What to say to the name of an option that has another one now, or is gone; None for any other name."""
    for full in (name, f"model.{name}"):
        if full in FIELDS:
            return f"`{name}` is called `{FIELDS[full]}` now."
        if full in REMOVED:
            return f"`{name}` was removed. Leave it out."
    return None


def new_value(name: str, value: Any) -> Any:
    """What a value of this option is called now."""
    return VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value


def check_flags(command: str, words: Sequence[str]) -> None:
    """Refuse options and values on a command line that have another name now."""
    if command == "reproduce" and ("--scale=night" in words or ("--scale", "night") in pairwise(words)):
        raise ValueError("The scale 'night' is called 'tenth' now: a tenth of the published training.")
    renamed = {**FLAGS.get(command, {}), **(_field_flags() if command == "train" else {})}
    removed = {_flag(name) for name in REMOVED} if command == "train" else set()
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if new := renamed.get(option):
            raise ValueError(f"`ssno {command}` has no `{option}` any more: use `{new}`.")
        if option in removed:
            raise ValueError(f"`ssno {command}` has no `{option}` any more: the option was removed. Leave it out.")
        old = value if equals else following
        name = option.removeprefix("--").replace("-", "_")
        if command == "train" and (now := VALUES.get(name, {}).get(old)):
            raise ValueError(f"`{option} {old}` is called `{option} {now}` now.")


def _field_flags() -> dict[str, str]:
    flags = {_flag(old): _flag(new) for old, new in FIELDS.items() if not old.startswith("forecaster.")}
    return {
        **flags,
        "--train.no-increment": "--train.no-predict-increment",
        "--model.no-coordinates": "--model.coordinates False",
        "--model.no-idle-forecast": "--model.block.no-idle-forecast",
    }


def _flag(name: str) -> str:
    return f"--{name}".replace("_", "-")
