"""`ssno demo`: the whole story in minutes."""

from pathlib import Path

from ssno.base.terminal import Console
from ssno.cli.options import progress
from ssno.paper.demo import Demo, run_demo
from ssno.training.log import reporter_for
from ssno.training.processes import EXIT_INTERRUPTED, TrainingInterrupted


def demo(*, out: Path = Path("demo"), epochs: int = Demo.epochs, trajectories: int = Demo.trajectories) -> None:
    """Generate Kuramoto-Sivashinsky data, train an SS-NO and an FFNO, compare them, draw pictures.

    Args:
        out: folder for data, runs, pictures and numbers.
        epochs: passes over the training trajectories.
        trajectories: how many to train on.
    """
    sizes = Demo(epochs=epochs, trajectories=trajectories)
    console = Console()
    with progress("data", console=Console(stderr=True)) as advance:
        try:
            run_demo(sizes, out, console=console, progress=advance, reporter=reporter_for)
        except TrainingInterrupted as stopped:
            Console(stderr=True).print(str(stopped), highlight=False)
            raise SystemExit(EXIT_INTERRUPTED) from None
