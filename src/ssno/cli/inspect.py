"""`ssno inspect RUN`: what the state-space layers of a trained model have learned, in physical units."""

from pathlib import Path

import tyro
from rich.text import Text

from ssno.base import to_text
from ssno.base.terminal import Console
from ssno.evaluation.inspection import LENGTHS, MEMORY, inspect_run
from ssno.plots.modes import inspection_figures
from ssno.plots.style import save
from ssno.runs.checkpoint import INSPECT
from ssno.runs.load import folder_for
from ssno.runs.open import open_run


def inspect(run: tyro.conf.Positional[Path], *, draw: bool = True, out: Path | None = None, json: bool = False) -> None:
    """Learned damping, frequencies, kernels and receptive fields of every layer and axis, beside their initial values.

    The initial model is rebuilt from the run's seed and config. Figures go to RUN/inspect. Works for every model with
    state-space layers, and for the memory of the others.

    Args:
        run: Folder of a training run, or one of its checkpoints (best, last); or a bundled checkpoint's name, whose
            figures go to ./runs/pretrained/NAME/inspect.
        draw: Draw distributions, kernels and memory.
        out: Folder for the figures.
        json: Print all numbers as JSON.
    """
    opened = open_run(run)
    found = inspect_run(opened)
    folder = folder_for(opened.folder, INSPECT) if out is None else out
    figures = inspection_figures(found) if draw else {}
    pictures = [save(make(), folder / f"{name}.png") for name, (_, make) in figures.items()]
    if json:
        listed = {**found.to_json(), "pictures": [str(picture) for picture in pictures]}
        print(to_text(listed, indent=2))
        return
    console = Console()
    for note in found.notes:
        console.print(Text.assemble(("*", "yellow"), f" {note}"), soft_wrap=True)
    if found.systems:
        console.print(found.table().terminal())
        console.print(LENGTHS)
    for row in found.rows():
        if row["layer"] == MEMORY:
            weights = ", ".join(f"{100 * share:.0f} %" for share in row["shares"])
            console.print(f"memory: weight of the last {len(row['shares'])} frames, newest first: {weights}")
    if pictures:
        console.print(f"Figures: {', '.join(map(str, pictures))}", soft_wrap=True)
