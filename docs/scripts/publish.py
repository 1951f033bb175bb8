"""Bundle a trained run with the package:  python docs/scripts/publish.py RUN NAME  (where ./data holds its dataset).

Evaluates the run on its test split, writes its weights, units and error to src/ssno/pretrained/NAME, and evaluates what
was written once more. Refused is whatever a user could not measure again by that name: an evaluation of another run or
of a part of the data, and data that `ssno data generate` does not make. Using checkpoints is in
`ssno.models.pretrained`.
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tyro

from ssno.data.datasets import DATASETS, PRESETS, build_plan, folder_name
from ssno.data.load import DataOptions, find
from ssno.data.manifest import DESCRIPTION, read_manifest
from ssno.evaluation.evaluate import evaluate, fingerprint
from ssno.evaluation.record import Evaluation
from ssno.models import pretrained as bundled
from ssno.models.pretrained import FILES
from ssno.report.publish import reported
from ssno.runs.open import RunFolder, open_run
from ssno.training.task import describe_data

LICENCE = "MIT"  # as the package
LARGEST = 2_000_000  # bytes of a checkpoint: the package carries all of them


def publish(folder: str | Path, name: str, evaluation: Evaluation, *, overwrite: bool = False) -> Path:
    """Write the checkpoint `name` to the package and return its folder.

    Args:
        folder: of a finished run, or of one of its checkpoints.
        name: lower case, digits, dots and dashes, as ks-0.1-64.
        evaluation: of that run on its complete test split, as `evaluate(folder)` makes it.
        overwrite: replace a checkpoint of that name.
    """
    if not bundled.NAME.fullmatch(name):
        raise ValueError(f"`name` must be lower-case words, digits, dots and dashes, as ks-0.1-64, got {name!r}.")
    target = bundled.ROOT / name
    if target.exists() and not overwrite:
        raise FileExistsError(f"There is already a checkpoint {name!r}. Replace it with `overwrite`.")
    run = open_run(folder)
    check_evaluation(run, evaluation)
    assert run.data is not None  # else there were no trajectories to check against
    options, dataset = public_options(run.data)
    before = run.config["run"].get("start_from")
    sections = {
        "run": {**run.config["run"], "data": asdict(options), "start_from": before and Path(before).name},
        "data": {"train": describe_data(run.load("train"))},
        "provenance": run.config.get("provenance", {}),
        "licence": LICENCE,
        "stated": {key: value for key, value in asdict(reported(evaluation, dataset)).items() if value is not None},
    }
    for place, text in texts({**run.forecaster.describe(), **sections}):
        if "/" in text or "\\" in text:
            raise ValueError(f"`{place}` in config.json of {folder} holds a path ({text!r}), which is not shipped.")
    bundled.ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bundled.ROOT, prefix=".") as staging:
        run.forecaster.save(staging, **sections)
        size = sum((Path(staging) / file).stat().st_size for file in FILES)
        if size >= LARGEST:
            raise ValueError(f"{folder} makes a checkpoint of {size:,} bytes; bundled ones are below {LARGEST:,}.")
        target.mkdir(exist_ok=True)
        for file in FILES:
            (Path(staging) / file).replace(target / file)
    return target


def check_evaluation(run: RunFolder, evaluation: Evaluation) -> None:
    """Refuse an evaluation that is not of this run on all of its test split, grid and frames included."""
    if evaluation.name != run.name or not evaluation.is_of(run):
        raise ValueError(
            f"`evaluation` is of {evaluation.name!r}, not of {run.folder} as it is now. Evaluate it again."
        )
    truth = fingerprint(run.load("test"), run.forecaster.window)
    if evaluation.split != "test" or evaluation.fingerprint != truth:
        raise ValueError(
            f"`evaluation` is not on the whole test split of the run, on its own grid and frames, but on "
            f"{evaluation.trajectories} {evaluation.split} trajectories with {evaluation.points[0]} points."
        )
    if not all(math.isfinite(evaluation.scores.means[metric]) for metric in ("rel_l2", "rel_l2_onestep")):
        raise ValueError(f"Forecasts of {run.folder} do not stay finite; such a checkpoint is not shipped.")


def public_options(options: DataOptions) -> tuple[DataOptions, str]:
    """The data as everybody finds them after `ssno data generate`, and the name of their folder in ./data."""
    folder = find(options.path or options.name, root=Path("data"), preset=options.preset, viscosity=options.viscosity)
    description = read_manifest(folder)[DESCRIPTION]
    dataset = description.get("dataset")
    if dataset in DATASETS:
        named = {option: description["options"][option] for option in DATASETS[dataset].named_by}
        for preset in PRESETS:
            plan = build_plan(dataset, preset, **named)
            usual = plan.description()
            if all(description.get(part) == usual[part] for part in ("options", "counts", "seed")):
                usual_folder = folder_name(plan.problem, preset)
                told = {key: value for key, value in named.items() if key in asdict(options)}  # the others are in words
                name = dataset if told else usual_folder.removesuffix(f"-{preset}")
                return replace(options, name=name, path=None, preset=preset, **told), usual_folder
    raise ValueError(
        f"The data of the run, {folder}, are not what `ssno data generate` makes of a dataset and a preset, so nobody "
        "could measure the error again."
    )


def texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text in nested values, names included, with where it is."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            where = f"{place}.{name}".lstrip(".")
            yield where, str(name)
            yield from texts(inner, where)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from texts(inner, f"{place}[{number}]")


def main(run: tyro.conf.Positional[Path], name: tyro.conf.Positional[str], *, overwrite: bool = False) -> None:
    """Make the bundled checkpoint NAME of RUN; `--overwrite` replaces one of that name."""
    measured = evaluate(run, write=False)
    folder = publish(run, name, measured, overwrite=overwrite)
    again = evaluate(folder, write=False)
    size = sum((folder / file).stat().st_size for file in FILES)
    stated = measured.scores.means["rel_l2"]
    print(f"{folder}: {size:,} bytes, rel_l2 {stated:.5g}; read back: {again.scores.means['rel_l2']:.5g}.")


if __name__ == "__main__":
    tyro.cli(main)
