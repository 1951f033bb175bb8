"""One command with verbs. Each verb is a module beside this one, imported only when it is called.

Exit codes: 0 done; 1 a check that failed (`data verify`, `doctor`, `train --check-resume`) or a generation that did;
2 a mistake in the call or its files (one line on stderr); 3 a training or a forecast that diverged; 75 a training
interrupted and saved; 130 a generation interrupted, which the same command continues.
"""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table

from ssno.base import unknown_name


@dataclass(frozen=True)
class Verb:
    """Where a verb lives and what it does; `raw` ones parse their own arguments."""

    module: str
    function: str
    summary: str
    raw: bool = False


VERBS = {
    "demo": Verb("demo", "demo", "The whole story in minutes: data, training, comparison, pictures."),
    "data generate": Verb("data_generate", "generate", "Make a dataset with our own solvers."),
    "data inspect": Verb("data_inspect", "inspect", "Look into a file: axes, fields, ranges, problems, pictures."),
    "data convert": Verb("data_convert", "convert", "Write a file of yours in our layout."),
    "data verify": Verb("data_verify", "verify", "Check every byte of a dataset."),
    "models": Verb("models", "models", "List the models with their parameters."),
    "train": Verb("train", "train", "Train a model; resume a run.", raw=True),
    "evaluate": Verb("evaluate", "evaluate", "Score runs with every metric, beside rules and solvers."),
    "compare": Verb("compare", "compare", "Evaluated runs in one table; seeds of a model together."),
    "predict": Verb("predict", "predict", "Forecast without truth, as far as you like, into a file."),
    "rollout": Verb("rollout", "rollout", "Forecast beside the truth: error of every step, pictures, animations."),
    "inspect": Verb("inspect", "inspect", "Learned damping, frequencies, kernels and memory of a run."),
    "report": Verb("report", "report", "One self-contained HTML page about runs."),
    "bench": Verb("bench", "bench", "Cost of all models: parameters, operations, memory, time."),
    "reproduce": Verb("reproduce", "reproduce", "Run a published result again: table, figure, a verdict per claim."),
    "doctor": Verb("doctor", "doctor", "Versions, threads, devices, disk, known problems."),
}
MISTAKES = (ValueError, TypeError, IndexError, OSError, ImportError)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the verb named on the command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        show_verbs()
        return
    try:
        name, verb, rest = find_verb(words)
        function = getattr(importlib.import_module(f"ssno.cli.{verb.module}"), verb.function)
        if verb.raw:
            function(rest)
        else:
            tyro.cli(function, args=rest, prog=f"ssno {name}")
    except MISTAKES as error:
        print(f"ssno: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def find_verb(words: list[str]) -> tuple[str, Verb, list[str]]:
    """The verb that the first one or two words name, and the words after it."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in VERBS:
            return name, VERBS[name], words[length:]
    below = [name for name in VERBS if name.startswith(f"{words[0]} ")]
    raise ValueError(unknown_name(" ".join(words[:2]) if below else words[0], below or list(VERBS)))


def show_verbs() -> None:
    """The verbs with a line each."""
    table = Table(title="ssno: learn the solution operator of a time-dependent PDE", title_justify="left", box=None)
    table.add_column("verb", style="bold")
    table.add_column("what it does")
    for name, verb in VERBS.items():
        table.add_row(f"ssno {name}", verb.summary)
    console = Console()
    console.print(table)
    console.print("\nEvery verb has --help. A first try: [bold]ssno demo[/bold]")
