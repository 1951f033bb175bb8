"""Model cards of the bundled checkpoints: what their files carry, and a measurement on their first test trajectories.

The reported errors, training options, data and versions come from the checkpoint's config.json. Forecasts beside
trivial ones, their spread over trajectories and where they fail are measured when the page is made: the first
`TESTED` test trajectories are generated (they are the same in every dataset of that plan) and forecast.
"""

import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from docs.scripts.pages.datasets import metric_of
from docs.scripts.pages.markdown import GENERATED, draw_once, page_link, source_digest, table, write_page

from ssno.base import byte_size
from ssno.cli.models import describe_checkpoint
from ssno.data import build_plan, generate
from ssno.data.datasets import DATASETS, generate_command
from ssno.evaluation import trivial_forecasters
from ssno.forecasting import Scores, divergence_step, rollout, score
from ssno.forecasting.divergence import largest_values
from ssno.models import bundled_folders, known_models
from ssno.plots import Band, error_bands, save
from ssno.runs import RunFolder, open_run, reported_metrics

TESTED = 4
LONGER = 5
"""Long forecasts have this many times the steps of training trajectories."""
SHOWN_OPTIONS = ("epochs", "batch_size", "learning_rate", "schedule", "noise_std", "loss", "precision", "seed")


def checkpoint_page(name: str, folder: Path) -> Path:
    """Write the card of a bundled checkpoint and its picture."""
    run, row = open_run(name), describe_checkpoint(bundled_folders()[name])
    stated = reported_metrics(run.config)
    assert stated is not None, f"{name} does not state its error"
    found = measured(run, folder)
    dataset = dataset_name(run)
    path = folder / f"{name}.md"
    parts = [
        f"# {name}\n\n"
        f"[{row['model']}](../models/{row['model']}.md) with {row['parameters']:,} parameters "
        f"({byte_size(row['bytes'])}), trained on [{dataset}](../datasets/{dataset}.md). Bundled with the package, "
        f"licence {run.config.get('licence', 'MIT')}.\n",
        GENERATED,
        *([f"![Error of {name} over time, beside trivial forecasts]({name}.png)\n"] if found["steps"] else []),
        f"```bash\n{usage(name, run)}\n```\n",
        f"## Errors\n\n{errors(found, stated.errors(), stated.data(), metric_of(dataset))}",
        f"## Where it fails\n\n{failures(found)}",
        f"## Data\n\n{data_lines(run)}",
        f"## Training\n\n{training(run)}",
        f"More: {page_link('how checkpoints are made and checked', 'models.md', near=path)}.\n",
    ]
    return write_page(path, "\n".join(parts))


def dataset_name(run: RunFolder) -> str:
    """The dataset of the registry that the checkpoint was trained on."""
    assert run.data is not None
    return run.data.name


def usage(name: str, run: RunFolder) -> str:
    """Commands with this checkpoint."""
    assert run.data is not None
    options = {} if run.data.viscosity is None else {"viscosity": run.data.viscosity}
    make = generate_command(run.data.name, run.data.preset, **options)
    return f"{make}    # the data below\nssno evaluate {name}\nssno rollout {name} --trajectories 0 1"


def measured(run: RunFolder, folder: Path) -> dict[str, Any]:
    """Forecasts of the first test trajectories, measured once for every checkpoint and solver."""
    path = folder / ".drawn" / f"{run.name}.json"
    weights = b"".join(file.read_bytes() for file in sorted(run.folder.glob("*")))
    code = source_digest("pde", "data", "forecasting", "models", "layers", "ssm")
    key = f"{hashlib.sha256(weights).hexdigest()} {code} {Path(__file__).read_text()}"
    draw_once(path, key, lambda target: target.write_text(json.dumps(measure(run))))
    found = json.loads(path.read_text())
    if found["steps"]:
        draw_once(folder / f"{run.name}.png", json.dumps(found), lambda target: draw(found, target))
    return found


def measure(run: RunFolder) -> dict[str, Any]:
    """Scores of the checkpoint and of trivial forecasts, and long forecasts."""
    options = run.data
    assert options is not None
    metric = metric_of(options.name)
    chosen = {} if options.viscosity is None else {"viscosity": options.viscosity}
    with tempfile.TemporaryDirectory() as place:
        counts = {"train": 0, "valid": 0, "test": TESTED}
        plan = build_plan(options.name, options.preset, counts=counts, **chosen)  # type: ignore[arg-type]
        generate(plan, Path(place) / "data", jobs=1)
        data = replace(options, path=str(Path(place) / "data"), viscosity=None, train=None, valid=None).load("test")
        steady = data.geometry.is_steady
        forecasters = {run.name: run.forecaster}
        if not steady:
            forecasters |= trivial_forecasters(data, run.forecaster.window)
        scores = {name: score(one, data, metrics=(*_needed(metric), "divergence")) for name, one in forecasters.items()}
        plan_of = run.forecaster.window.plan(len(data.times))
        steps = [] if steady else [float(data.times[n]) for n in plan_of.scored]
        return {
            "metric": metric,
            "steps": steps,
            "given": len(plan_of.input_frames),
            "predicted": len(plan_of.predicted),
            "scores": {name: _plain(one) for name, one in scores.items()},
            "long": None if steady or data.context_fields else _long(run, data, len(plan_of.predicted)),
        }


def _needed(metric: str) -> tuple[str, ...]:
    return tuple({"rel_l2", "rel_l2_onestep", metric})


def _plain(scores: Scores) -> dict[str, Any]:
    return {
        "means": scores.means,
        "steps": scores.step_errors,
        "quartiles": scores.step_quartiles,
        "trajectories": scores.trajectory_errors,
        "divergences": [one.words() for one in scores.divergences],
        "departures": [one.words() for one in scores.departures],
    }


def _long(run: RunFolder, data: Any, predicted: int) -> dict[str, Any]:
    """When forecasts far beyond the training trajectories diverge."""
    frames = data.read(range(2)).state
    given = len(run.forecaster.window.plan(len(data.times)).input_frames)
    steps = LONGER * predicted
    made = rollout(run.forecaster, frames[:, :given], steps)
    first = divergence_step(made, largest_values(frames)).tolist()
    size = made.flatten(2).square().mean(2).sqrt() / frames.flatten(1).square().mean(1).sqrt()[:, None]
    return {"steps": steps, "diverged": first, "size": [float(v) for v in size[:, -1]]}


def draw(found: dict[str, Any], path: Path) -> None:
    """Error over time of the checkpoint and of trivial forecasts, with quartiles over trajectories."""
    bands = {}
    for name, one in found["scores"].items():
        low, high = one["quartiles"]
        bands[name] = Band(one["steps"], low or one["steps"], high or one["steps"])
    title = f"error of forecasts, mean and quartiles of {TESTED} test trajectories"
    save(error_bands(found["steps"], bands, title=title), path)


def errors(found: dict[str, Any], stated: dict[str, float], data: str, metric: str) -> str:
    """Reported errors, and those measured here beside trivial forecasts."""
    reported = table(["metric", "reported"], [(f"`{key}`", f"{value:.3g}") for key, value in stated.items()])
    rows = []
    for name, one in found["scores"].items():
        each = np.asarray(one["trajectories"])
        rows.append(
            (
                name,
                f"{one['means'][metric]:.3g}",
                f"{one['means']['rel_l2_onestep']:.3g}",
                f"{each.min():.3g} to {each.max():.3g}",
            )
        )
    headings = ["forecast", f"`{metric}`", "one step", "`rel_l2` of single trajectories"]
    return (
        f"Reported in its config.json, on {data} (one training, so there is no spread over seeds):\n\n{reported}\n"
        f"Measured when this page was made, on the first {TESTED} test trajectories:\n\n{table(headings, rows)}"
    )


def failures(found: dict[str, Any]) -> str:
    """Where forecasts stop being useful."""
    own = next(iter(found["scores"].values()))
    lines = []
    if found["steps"]:
        lines.append(f"It takes {found['given']} frame(s) and was scored over {found['predicted']} steps.")
        trivial = [one["steps"] for one in list(found["scores"].values())[1:]]
        best = np.min(trivial, axis=0)
        bad = np.nonzero(np.asarray(own["steps"]) > best)[0]
        lines.append(
            "The mean error stays below both trivial forecasts at every scored step."
            if not len(bad)
            else f"From step {bad[0] + 1} of the scored ones on a trivial forecast has a smaller mean error."
        )
    for key in ("divergences", "departures"):
        lines += [f"{text[0].upper()}{text[1:]}." for text in own[key][:3]]
    long = found["long"]
    if long is not None:
        gone = [step + 1 for step in long["diverged"] if step >= 0]
        size = ", ".join(f"{value:.2g}" for value in long["size"])
        lines.append(
            f"Forecasts of {long['steps']} steps ({LONGER} times the scored ones), two trajectories: "
            + (f"{len(gone)} diverged, first at step {min(gone)}." if gone else "none diverged;")
            + (f" root mean square at the end relative to the test frames: {size}." if not gone else "")
        )
    if not lines:
        lines = [
            "The forecast is one step (a steady flow): it cannot drift. Shapes outside the training range were not "
            "tested."
        ]
    return "\n".join(f"- {line}" for line in lines) + "\n"


def data_lines(run: RunFolder) -> str:
    """Dataset, preset, grid and normalisation."""
    options, normal = run.data, run.forecaster.normalisers.state
    assert options is not None
    rows = [("dataset", f"`{options.name}`, preset `{options.preset}`")]
    if options.viscosity is not None:
        rows.append(("viscosity", f"{options.viscosity:g}"))
    if options.resolution is not None:
        rows.append(("resolution", f"{options.resolution}, by {options.reduction}"))
    if options.time_index is not None:
        rows.append(("frames", options.time_index))
    rows += [
        (f"`{field}`", f"shift {shift:.4g}, scale {scale:.4g}")
        for field, shift, scale in zip(normal.fields, normal.shift, normal.scale, strict=True)
    ]
    return table(["", "value"], rows, right=2)


def training(run: RunFolder) -> str:
    """Options of the training that config.json carries, and versions."""
    options = (run.config.get("run") or {}).get("train") or {}
    rows = [(f"`{key}`", options[key]) for key in SHOWN_OPTIONS if key in options]
    before = (run.config.get("run") or {}).get("start_from")
    rows += [("started from", f"`{before}`")] if before else []
    versions = run.config.get("provenance") or {}
    rows += [(key, versions[key]) for key in ("ssno", "torch", "processor") if key in versions]
    return table(["option", "value"], rows, right=2)


def checkpoint_rows() -> list[tuple[str, str, str, str]]:
    """Name, model, data and reported error of every checkpoint."""
    rows = []
    for name, folder in bundled_folders().items():
        row = describe_checkpoint(folder)
        stated = row["reported"] or {}
        assert row["model"] in known_models()
        rows.append((f"[{name}](checkpoints/{name}.md)", row["model"], stated["dataset"], f"{stated['rel_l2']:.3g}"))
    return rows


def all_checkpoints() -> tuple[str, ...]:
    """Their names."""
    assert all(open_run(name).data is not None for name in bundled_folders())
    assert all(dataset_name(open_run(name)) in DATASETS for name in bundled_folders())
    return tuple(bundled_folders())
