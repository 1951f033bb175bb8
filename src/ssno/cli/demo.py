"""`ssno demo`: the whole story in minutes."""

from dataclasses import replace
from pathlib import Path

from ssno.base.terminal import Console
from ssno.cli.options import progress
from ssno.paper.demo import Demo, run_demo
from ssno.runs.log import reporter_for
from ssno.training.processes import EXIT_INTERRUPTED, TrainingInterrupted


def demo(
    *, out: Path = Path("demo"), epochs: int | None = None, trajectories: int | None = None, tiny: bool = False
) -> None:
    """Generate Kuramoto-Sivashinsky data, train an SS-NO and an FFNO, compare them, draw pictures.

    Args:
        out: folder for data, runs, pictures and numbers.
        epochs: passes over the training trajectories; 24 by default, 1 with --tiny.
        trajectories: how many to train on; 512 by default, 8 with --tiny.
        tiny: the smallest sizes, to see whether everything works: seconds, and errors without meaning.
    """
    sizes = Demo.tiny() if tiny else Demo()
    sizes = replace(sizes, epochs=epochs or sizes.epochs, trajectories=trajectories or sizes.trajectories)
    console = Console()
    with progress("data", console=Console(stderr=True)) as advance:
        try:
            run_demo(sizes, out, console=console, progress=advance, reporter=reporter_for)
        except TrainingInterrupted as stopped:
            Console(stderr=True).print(str(stopped), highlight=False)
            raise SystemExit(EXIT_INTERRUPTED) from None
