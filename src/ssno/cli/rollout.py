"""`ssno rollout RUN`: forecast trajectories whose truth is known, print the error of every step, draw and animate."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from ssno.base import to_text
from ssno.base.formatting import as_file_name, number
from ssno.base.terminal import Console
from ssno.cli.options import exits_without_frames, other_data, tell, warn_of_horizon, warn_of_other_data
from ssno.data.readers.registry import DEFAULTS as AS_STORED
from ssno.data.readers.registry import ReadOptions
from ssno.data.trajectories import Trajectories
from ssno.evaluation.evaluate import described_by
from ssno.evaluation.examples import Examples, make_examples
from ssno.forecasting.divergence import OnDivergence
from ssno.forecasting.metrics import frame_errors
from ssno.plots.animation import DEFAULTS, AnimationOptions, moving_picture
from ssno.plots.curves import band_of, error_bands
from ssno.plots.fields import as_drawn, still_picture
from ssno.plots.geometries import flow_pictures
from ssno.plots.style import save
from ssno.runs.checkpoint import ROLLOUT
from ssno.runs.load import folder_for
from ssno.runs.open import open_run
from ssno.training.processes import EXIT_DIVERGED


def rollout(
    run: tyro.conf.Positional[Path],
    *,
    index: Annotated[tuple[int, ...], tyro.conf.arg(name="trajectories")] = (0,),
    split: str = "test",
    data: str | None = None,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = AS_STORED,
    resolution: tuple[int, ...] | None = None,
    draw: bool = True,
    animate: bool = True,
    animation: AnimationOptions = DEFAULTS,
    out: Path | None = None,
    on_divergence: OnDivergence = "stop",
    json: bool = False,
) -> None:
    """Forecast trajectories of the run's data and compare them with the truth, step by step.

    Pictures go to RUN/rollout: panels (space-time in one dimension) and an animation for every trajectory and field,
    MP4 if ffmpeg is installed, else GIF; and the error along the forecast. If a forecast diverges, the exit
    code is 3.

    Args:
        run: Folder of a training run, or one of its checkpoints (best, last); or a bundled checkpoint's name, whose
            pictures go to ./runs/pretrained/NAME/rollout.
        index: Trajectories to forecast, numbered from 0.
        split: Where they are: train, valid or test.
        data: Other data than the run's: a dataset's name, a file or a folder, read with the options of the run's own.
        read: How to read those other data, where neither the file says it nor the run.
        resolution: Points along the first axis, or along each, to forecast at another resolution than that of training.
        draw: Draw panels.
        animate: Make animations.
        animation: How animations look.
        out: Folder for the pictures.
        on_divergence: When a forecast diverges (non-finite, or ten times larger than the data): stop, and show the
            steps before; or continue.
        json: Print the errors as JSON.
    """
    opened = open_run(run)
    other = other_data(opened, data, read)
    if other is None:
        trajectories = opened.load(split, resolution=resolution)
    else:
        trajectories = replace(opened, data=described_by(opened, other)).load(split, resolution=resolution)
        warn_of_other_data(opened, trajectories, resolution_given=resolution is not None)
    asked = len(opened.forecaster.window.plan(len(trajectories.times)).predicted)
    warn_of_horizon(opened, asked)
    with exits_without_frames():
        seen = make_examples(opened.forecaster, trajectories, index, on_divergence=on_divergence)
    folder = folder_for(opened.folder, ROLLOUT) if out is None else out
    suffix = "" if resolution is None else f"-{'x'.join(map(str, resolution))}"
    how: dict[str, Any] = {"model": opened.name, "draw": draw, "animate": animate, "animation": animation}
    pictures = [
        picture
        for row in range(len(index))
        for picture in draw_one(seen, trajectories, row, folder, f"{split}{suffix}", **how)
    ]
    errors = seen.step_errors()
    if draw and len(seen.predicted_times) > 1:
        until = seen.times[seen.input_frames - 1]
        bands = {opened.name: band_of(errors.numpy())}
        figure = error_bands(seen.predicted_times, bands, given_until=until, time_label=trajectories.units.time_label)
        pictures.append(save(figure, folder / f"{split}{suffix}-error.png"))
    if json:
        steps = [
            {"step": step + 1, "time": time, "rel_l2": errors[:, step].tolist()}
            for step, time in enumerate(seen.predicted_times)
        ]
        result = {"trajectories": list(index), "points": [axis.points for axis in trajectories.axes], "steps": steps}
        watched: dict[str, Any] = {
            "steps_asked": asked,
            "trained_steps": opened.trained_steps,
            "recorded": seen.recorded,
        }
        watched |= {name: [asdict(one) for one in getattr(seen, name)] for name in ("divergences", "departures")}
        print(to_text({**result, **watched, "pictures": [str(picture) for picture in pictures]}, indent=2))
    else:
        show(seen, pictures, name=opened.name, data=trajectories)
        tell(seen.divergences, seen.departures, recorded=seen.recorded, steps=len(seen.predicted_times), asked=asked)
    if seen.divergences:
        raise SystemExit(EXIT_DIVERGED)


def draw_one(
    seen: Examples,
    data: Trajectories,
    row: int,
    folder: Path,
    label: str,
    *,
    model: str,
    draw: bool,
    animate: bool,
    animation: AnimationOptions,
) -> list[Path]:
    """Panels and animations of the fields of one trajectory; of a cloud, pictures of the pressure."""
    start = f"{label}-{seen.indices[row]}"
    if data.geometry.has_wall:
        if not draw or "p" not in data.fields:
            return []
        found = flow_pictures(data, seen.indices[row], seen.forecast[row, -1])
        return [save(make(), folder / f"{start}-{name}.png") for name, make in found.items()]
    made = []
    for channel, (field, (truth, forecast), labels) in enumerate(as_drawn(data, *seen.drawn(row))):
        name = f"{start}-{as_file_name(field)}" if len(data.fields) > 1 else start
        errors = field_errors(seen, row, channel) if channel < len(data.fields) else None
        labels = labels.titled(title_of(seen, row, errors, model=model, field=field))
        if draw:
            figure = still_picture(data, truth, forecast, times=seen.times, labels=labels)
            made.append(save(figure, folder / f"{name}.png"))
        if animate:
            path, predicted = folder / f"{name}{animation.suffix}", truth[seen.input_frames :]
            told: dict[str, Any] = {"labels": labels, "errors": errors, "options": animation}
            made.append(moving_picture(data, predicted, forecast, path, times=seen.predicted_times, **told))
    return made


def field_errors(seen: Examples, row: int, channel: int) -> list[float]:
    """Relative error of one field of one trajectory at every step."""
    forecast, truth = (values[[row]][:, :, [channel]] for values in (seen.forecast, seen.predicted_truth))
    return frame_errors(forecast, truth)[0].tolist()


def title_of(seen: Examples, row: int, errors: Sequence[float] | None, *, model: str, field: str) -> str:
    """What is drawn, its mean error where it is a predicted field, and where the forecast diverged."""
    index = seen.indices[row]
    lost = next((one.step for one in seen.divergences if one.trajectory == index), None)
    good = (errors or ())[:lost]
    error = f", relative error {number(sum(good) / len(good))}" if good else ""
    return f"{model}: {field} of trajectory {index}{error}" + ("" if lost is None else f", diverged at step {lost + 1}")


def show(seen: Examples, pictures: list[Path], *, name: str, data: Trajectories) -> None:
    """Error of every step, a column per trajectory."""
    grid = " x ".join(str(axis.points) for axis in data.axes)
    table = Table(
        "step",
        data.units.time_label,
        title=f"{name} on {data.name}, {grid} points: relative l2 error",
        title_justify="left",
    )
    for index in seen.indices:
        table.add_column(f"trajectory {index}", justify="right")
    for step, time in enumerate(seen.predicted_times):
        table.add_row(str(step + 1), f"{time:.4g}", *(f"{value:.4g}" for value in seen.step_errors()[:, step].tolist()))
    console = Console()
    console.print(table)
    if pictures:
        console.print(f"Pictures: {', '.join(map(str, pictures))}", soft_wrap=True)
