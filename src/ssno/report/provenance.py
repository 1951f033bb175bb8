"""Settings and environment of a run, and the commands that reproduce it."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ssno.data.datasets import DATASETS, PRESETS, generate_command, split_name
from ssno.data.load import find
from ssno.evaluation.record import Evaluation
from ssno.models.registry import ALL_MODELS
from ssno.runs.open import RunFolder


def settings(run: RunFolder, evaluation: Evaluation) -> dict[str, Mapping[str, Any]]:
    """The complete configuration by section, and the versions and hardware of training and evaluation."""
    sections = {"model": run.config["config"], "units": run.config.get("forecaster", {})}
    described = run.config.get("run", {})
    sections |= {name: values for name, values in described.items() if isinstance(values, Mapping) and name != "model"}
    titles = {"train": "Training", "valid": "Validation data", "units": "Normalisation and window"}
    return {titles.get(name, name.capitalize()): flatten(values) for name, values in sections.items() if values} | {
        "Environment of the training": run.config.get("provenance", {}),
        "Environment of the evaluation": evaluation.provenance,
    }


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as dotted names."""
    flat: dict[str, str] = {}
    for name, value in values.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: json.dumps(value)}
    return flat


def repeat_commands(run: RunFolder, evaluation: Evaluation, data_options: Sequence[str]) -> list[str]:
    """Commands from an empty folder to this page, in the same versions."""
    known = run.config.get("provenance", {})
    commit = str(known.get("commit", "unknown"))
    lines = [f"# ssno {known.get('ssno', '')}, commit {commit}, torch {known.get('torch', '')}"]
    name = run.name.partition("/")[0]
    if run.data is not None:
        if run.model not in ALL_MODELS:
            lines.append(f"# {run.model!r} is not a model of ssno: register it first, see docs/manual/own-models.md")
        lines += [data_command(run), f"ssno train --config run.json --name {name}"]
    asked = " " + shlex.join(["--split", evaluation.split, *data_options])
    other = run.grid not in (None, tuple(evaluation.points))
    where = f" --resolution {' '.join(map(str, evaluation.points))}" if other else ""
    return [*lines, *(f"ssno {verb} runs/{name}{asked}{where}" for verb in ("evaluate", "report"))]


def data_command(run: RunFolder) -> str:
    """How the data are generated, if one of our solvers made them."""
    options = run.data
    assert options is not None
    if options.path is not None or split_name(options.name)[0] not in DATASETS:
        return f"# the data: {options.path or options.name}"
    extra: dict[str, Any] = {} if options.viscosity is None else {"viscosity": options.viscosity}
    preset = options.preset
    if preset is None:  # the largest that is there
        try:
            folder = find(options.name, root=Path("data"), preset=None, viscosity=options.viscosity)
            preset = next((size for size in PRESETS if folder.name.endswith(f"-{size}")), None)
        except FileNotFoundError:
            pass
    return generate_command(options.name, preset or "paper", **extra)  # type: ignore[arg-type]
