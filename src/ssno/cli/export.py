"""`ssno export RUN`: a trained model as a file that other programs run."""

from pathlib import Path
from typing import Annotated

import tyro

from ssno.base import byte_size, to_text
from ssno.export.write import ExportFormat, export_run, summary
from ssno.runs.open import open_run


def export(
    run: tyro.conf.Positional[Path],
    *,
    format: ExportFormat = "onnx",
    resolution: tuple[int, ...] | None = None,
    batch: str = "1",
    steps: int = 1,
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Write one forecast step of a trained model as an ONNX file, a PyTorch program or a compiled library.

    The step takes the newest frame and a buffer and returns the next frame and the buffer, in physical units, on one
    grid. Before the file appears, it is run beside PyTorch over 50 steps and must agree to 1e-4.

    Args:
        run: Folder of a training run, one of its checkpoints, or the name of a bundled checkpoint.
        format: onnx (needs the extra ssno[onnx]), torch (torch.export), or aoti (compiled for this processor).
        resolution: Points along the first axis, others in proportion, or along each; by default those of training.
        batch: Trajectories per call: a number, or any.
        steps: Steps per call, unrolled; the call returns all their frames.
        output: The new file; by default the name of the run with the format's ending.
        overwrite: Replace the output if it exists.
        json: Print the result as JSON.
    """
    if batch != "any" and not batch.isdecimal():
        raise ValueError(f"`batch` must be a number of trajectories, or any, got {batch!r}.")
    made = export_run(
        open_run(run, device="cpu", precision="float32"),
        output,
        format=format,
        resolution=resolution,
        batch="any" if batch == "any" else int(batch),
        steps=steps,
        overwrite=overwrite,
    )
    if json:
        print(to_text(summary(made), indent=2))
        return
    found, grid = made.agreement, " x ".join(map(str, made.metadata["grid"]))
    print(f"{made.path}: {made.metadata['model']} on {grid} points, {byte_size(made.bytes)}.")
    print(
        f"Beside PyTorch over {found.steps} steps, relative to the size of each field: one step differs by "
        f"{found.one_step:.0e}, the free-running forecast by {found.free_running:.0e} (there a perturbation has grown "
        f"{found.amplification:.2g} times)."
    )
    if format == "onnx":
        print(f"ssno predict {made.path} --input FILE --output FILE forecasts with it.")
