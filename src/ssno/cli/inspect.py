"""`ssno inspect RUN`: what the state-space layers of a trained model have learned, in physical units."""

from pathlib import Path
from typing import Any

import tyro
from rich.table import Table
from rich.text import Text

from ssno.base import to_text
from ssno.base.terminal import Console
from ssno.evaluation.inspection import MEMORY, RunInspection, inspect_run
from ssno.plots.modes import kernel_panels, memory_weights, mode_ridges
from ssno.plots.style import save
from ssno.runs.layout import INSPECT
from ssno.runs.lock import folder_for
from ssno.runs.open import open_run

ARROWS = {"forward": "→", "backward": "←"}


def inspect(run: tyro.conf.Positional[Path], *, draw: bool = True, out: Path | None = None, json: bool = False) -> None:
    """Learned damping, frequencies, kernels and receptive fields of every layer and axis, against their start.

    The start is made again from the run's seed and config. Pictures go to RUN/inspect. Works for every model with
    state-space layers, and for the memory of the others.

    Args:
        run: Folder of a training run, or one of its checkpoints (best, last); or a bundled checkpoint's name, whose
            pictures go to ./runs/pretrained/NAME/inspect.
        draw: Draw distributions, kernels and memory.
        out: Folder for the pictures.
        json: Print all numbers as JSON.
    """
    opened = open_run(run)
    found = inspect_run(opened)
    folder = folder_for(opened.folder, INSPECT) if out is None else out
    pictures = draw_findings(found, folder) if draw else []
    if json:
        listed = {**found.to_json(), "pictures": [str(picture) for picture in pictures]}
        print(to_text(listed, indent=2))
        return
    console = Console()
    for note in found.notes:
        console.print(Text.assemble(("*", "yellow"), f" {note}"), soft_wrap=True)
    if found.systems:
        show(found.rows(), found, console)
    if pictures:
        console.print(f"Pictures: {', '.join(map(str, pictures))}", soft_wrap=True)


def draw_findings(found: RunInspection, folder: Path) -> list[Path]:
    """Distributions and kernels for every grid axis, and the memory."""
    made = []
    for axis in found.axes():
        now, before = found.along(axis)
        if axis == "time":
            made.append(save(memory_weights(now[0], before[0]), folder / "memory.png"))
            continue
        length = now[0].unit * now[0].kernel.shape[1]
        name = axis.replace(" ", "-")
        made.append(save(mode_ridges(now, before, length=length), folder / f"modes-{name}.png"))
        made.append(save(kernel_panels(now, before), folder / f"kernels-{name}.png"))
    return made


def show(rows: list[dict[str, Any]], found: RunInspection, console: Console) -> None:
    """A row per layer, axis and direction."""
    table = Table("layer", "axis", title=f"{found.name}: learned (initial)", title_justify="left")
    for heading in ("damping", "frequency", "decay", "reach 63\u00a0%", "reach 95\u00a0%"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row["layer"],
            f"{row['axis']} {ARROWS[row['direction']]}",
            f"{row['damping']:.3f} ({row['initial_damping']:.3f})",
            f"{row['frequency']:.3g} ({row['initial_frequency']:.3g})",
            *(pair(row, name) for name in ("decay_length", "reach_63", "reach_95")),
        )
    console.print(table)
    console.print(
        "Damping, frequency: means over modes, per unit of the layer's own step. Decay (by 1/e) and reach (of 63 % and "
        "95 % of a kernel): medians, in the units of the axis. An arrow is the direction of the scan."
    )
    for row in rows:
        if row["layer"] == MEMORY:
            shares = ", ".join(f"{100 * share:.0f} %" for share in row["shares"])
            console.print(f"memory: weight of the last {len(row['shares'])} frames, newest first: {shares}")


def pair(row: dict[str, Any], name: str) -> str:
    """A length and where it started; a mode without damping never decays."""
    now, before = (("never" if row[key] is None else f"{row[key]:.3g}") for key in (name, f"initial_{name}"))
    return f"{now} ({before})"
