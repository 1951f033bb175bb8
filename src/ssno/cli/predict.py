"""`ssno predict RUN --input FILE --output FILE`: forecast without truth."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from ssno.base import cost_rows, to_text
from ssno.base.terminal import Console
from ssno.cli.options import exits_without_frames, progress, tell, warn_of_horizon, warn_of_other_data
from ssno.data.readers.registry import DEFAULTS, ReadOptions
from ssno.data.storage import block_frames
from ssno.data.units import measured
from ssno.export import open_exported
from ssno.forecasting.divergence import OnDivergence, guard_words
from ssno.forecasting.predict import Prediction, estimate_seconds, plan_prediction
from ssno.forecasting.predict import predict as predict_to_file
from ssno.native.engine import Precision
from ssno.runs.open import open_run
from ssno.training.processes import EXIT_DIVERGED


def predict(
    run: tyro.conf.Positional[Path],
    *,
    input: Path,
    output: Path,
    steps: int = 100,
    input_frames: int | None = None,
    trajectories: tuple[int, ...] = (),
    split: str = "all",
    resolution: tuple[int, ...] | None = None,
    time_index: str | None = None,
    time_step: float | None = None,
    read: Annotated[ReadOptions, tyro.conf.arg(name="")] = DEFAULTS,
    batch_size: int = 16,
    precision: Precision | None = None,
    overwrite: bool = False,
    on_divergence: OnDivergence = "stop",
    guard: bool = False,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Forecast the future of every trajectory in a file and write it to another.

    Forecasts start from the last frames of the input, as many as the model takes. Memory does not grow with the
    horizon. The output has our layout (The Well's): `ssno data inspect` and `load_dataset` read it. Prints the step at
    which a quantity first leaves the range of the training data. If a forecast diverges, the exit code is 3.

    Args:
        run: Folder of a training run, the name of a bundled checkpoint, or an ONNX file that `ssno export` wrote.
        input: A file (HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch), a Zarr store, a folder,
            or a dataset's name.
        output: The new HDF5 file.
        steps: Frames to predict.
        input_frames: Predict after this many frames of the input; by default after all. Context fields are also read
            after them.
        trajectories: Trajectories to forecast; all by default.
        split: Which part of a divided dataset: train, valid, test or all.
        resolution: Coarsen the input to this many points along the first axis, or along each: every n-th point
            where that fits, else spectral resampling of periodic fields.
        time_index: Frames of the input to use, start:stop:step; by default what the literature uses.
        time_step: Time between frames, if the input has a single one.
        read: What neither the file says nor the run: without these, the input is read as the run's own data were.
        batch_size: Trajectories forecast together.
        precision: Floating-point format: float32, bf16 or float64; by default that of the weights.
        overwrite: Replace the output if it exists.
        on_divergence: When a trajectory diverges (non-finite, or ten times larger than the data): stop, and write the
            frames before of all trajectories; or continue, and write all steps.
        guard: Limit every predicted frame to the energies of the training data, band by band of waves, so that a
            forecast stays bounded however long it is; says which frames it changed. Periodic axes only.
        dry_run: Check everything, measure a few steps, forecast time and disk, and write nothing.
        json: Print the result as JSON.
    """
    if run.suffix == ".onnx" and precision not in (None, "float32"):
        raise ValueError(f"`precision` of an exported file must be float32, got {precision!r}.")
    opened = open_exported(run) if run.suffix == ".onnx" else open_run(run, precision=precision)
    forecaster = opened.forecaster
    # Forecasts go on from the end of a whole trajectory, not of the pieces that were trained on.
    alike = replace(opened, data=replace(opened.alike(input, read), segment=None, time_index=None))
    data = alike.load(split, resolution=resolution, time_index=time_index)
    warn_of_other_data(opened, data, resolution_given=resolution is not None)
    data = data.select(indices=trajectories) if trajectories else data
    if dry_run:
        job = plan_prediction(forecaster, data, steps=steps, input_frames=input_frames, time_step=time_step)
        held = min(batch_size, len(data)) * job.bytes // len(data) // steps * block_frames(data.shape[3:], steps)
        cost: dict[str, Any] = {
            "trajectories": len(data),
            "steps": steps,
            "first_time": float(job.times[0]),
            "last_time": float(job.times[-1]),
            "seconds": estimate_seconds(job, batch_size=batch_size),
            "memory_bytes": held,
            "disk_bytes": job.bytes,
        }
        show_cost(cost, as_json=json)
        return
    warn_of_horizon(opened, steps)
    with exits_without_frames(), progress(f"forecasting {len(data)} trajectories") as advance:
        done = predict_to_file(
            forecaster,
            data,
            output,
            steps=steps,
            input_frames=input_frames,
            time_step=time_step,
            batch_size=batch_size,
            overwrite=overwrite,
            on_divergence=on_divergence,
            guard=guard,
            report=advance,
        )
    show(replace(done, trained_steps=opened.trained_steps), as_json=json, time_unit=data.units.time)
    if done.divergences:
        raise SystemExit(EXIT_DIVERGED)


def show_cost(cost: dict[str, Any], *, as_json: bool) -> None:
    """What the forecast would cost."""
    if as_json:
        print(to_text(cost, indent=2))
        return
    table = Table("what", title="dry run: estimated cost; nothing was written", title_justify="left")
    table.add_column("how much", justify="right")
    table.add_row("trajectories", f"{cost['trajectories']:,}")
    table.add_row("steps", f"{cost['steps']:,}, time {cost['first_time']:.6g} to {cost['last_time']:.6g}")
    for row in cost_rows(cost["seconds"], cost["memory_bytes"], cost["disk_bytes"]):
        table.add_row(*row)
    Console().print(table)


def show(done: Prediction, *, as_json: bool, time_unit: str = "") -> None:
    """Where the forecast is, and which trajectories went astray at which step."""
    if as_json:
        print(to_text({**asdict(done), "path": str(done.path)}, indent=2))
        return
    first, last = done.times
    until = measured(f"{last:.6g}", time_unit)
    print(
        f"{done.path}: {done.trajectories} trajectories, {done.steps} steps, time {first:.6g} to {until}, "
        f"in {done.seconds:.1f} s."
    )
    tell(done.divergences, done.departures, recorded=done.recorded, steps=done.steps, asked=done.steps_asked)
    if done.limited:
        Console().print(guard_words(done.limited, done.limited_first), highlight=False, soft_wrap=True)
