"""One command with verbs. Each verb is a module beside this one, imported only when it is called.

Exit codes: 0 done; 1 a check that failed (`data verify`, `doctor`, `train --check-resume`) or a generation that did;
2 a mistake in the call or its files (one line on stderr); 3 a training or a forecast that diverged; 70 a bug of ours
(a traceback; with SSNO_DEBUG=1 there is always one); 75 a training interrupted, and saved if it had begun; 130 any
other command interrupted (a generation goes on with the same command).
"""

import gc
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ssno.base import package_version, unknown_name
from ssno.base.distributed_env import is_first
from ssno.base.formatting import printable
from ssno.base.renamed import check_flags


@dataclass(frozen=True)
class Verb:
    """Where a verb lives and what it does; `raw` ones parse their own arguments, `computes`: takes --device.

    `interrupted` is the exit code after SIGINT and SIGTERM.
    """

    module: str
    function: str
    summary: str
    raw: bool = False
    computes: bool = False
    interrupted: int = 130


TRAINING_INTERRUPTED = 75
"""As `ssno.training.processes`, which is not imported yet when a signal may come."""
VERBS = {
    "demo": Verb(
        "demo",
        "demo",
        "Demonstration in minutes: data, training, comparison, figures.",
        computes=True,
        interrupted=TRAINING_INTERRUPTED,
    ),
    "data generate": Verb("data_generate", "generate", "Make a dataset with our own solvers."),
    "data inspect": Verb("data_inspect", "inspect", "Inspect a file: axes, fields, ranges, problems, figures."),
    "data animate": Verb("data_files", "animate", "Animate data, without a model."),
    "data convert": Verb("data_files", "convert", "Convert a file to ssno's HDF5 layout."),
    "data verify": Verb("data_files", "verify", "Check every byte of a dataset."),
    "models": Verb("models", "models", "List the models with their parameters."),
    "train": Verb("train", "train", "Train a model; resume a run.", raw=True, interrupted=TRAINING_INTERRUPTED),
    "sweep": Verb(
        "sweep",
        "sweep",
        "Many trainings from one file, compared in one table.",
        computes=True,
        interrupted=TRAINING_INTERRUPTED,
    ),
    "evaluate": Verb(
        "evaluate", "evaluate", "Score runs with every metric, beside trivial forecasts and the solver.", computes=True
    ),
    "compare": Verb("compare", "compare", "Evaluated runs in one table; seeds of a model together."),
    "predict": Verb("predict", "predict", "Forecast without truth, any number of steps, into a file.", computes=True),
    "rollout": Verb(
        "rollout", "rollout", "Forecast beside the truth: error of every step, pictures, animations.", computes=True
    ),
    "export": Verb("export", "export", "Write a trained model for ONNX Runtime, torch.export or C++."),
    "inspect": Verb("inspect", "inspect", "Learned damping, frequencies, kernels and memory of a run.", computes=True),
    "report": Verb("report", "report", "One self-contained HTML page about runs.", computes=True),
    "publish": Verb("publish", "publish", "A run as a folder for others: weights, model card, licence.", computes=True),
    "play": Verb("play", "play", "One page on which a model runs live in the browser, beside a solver."),
    "bench": Verb("bench", "bench", "Cost of all models: parameters, operations, memory, time.", computes=True),
    "reproduce": Verb(
        "reproduce",
        "reproduce",
        "Run a published result again: table, figure, a verdict per claim.",
        computes=True,
        interrupted=TRAINING_INTERRUPTED,
    ),
    "doctor": Verb("doctor", "doctor", "Versions, threads, devices, disk, known problems."),
}
STOPPED = "ssno: interrupted. What is saved is kept; give the same command again."
REPORT = "This is a bug in ssno, not a mistake of yours. Please report it with the lines above and the command."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the verb named on the command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if os.environ.get("SSNO_DEBUG") == "1":
            raise
        if is_mistake(error):
            say(f"ssno: {error}")
            raise SystemExit(2) from error
        say("".join(traceback.format_exception(error)))
        say(f"ssno: {REPORT}")
        raise SystemExit(70) from error


def run(words: list[str]) -> None:
    """Find the verb, parse its options, call it."""
    if not words or words[0] in ("-h", "--help"):
        show_verbs()
        return
    below = [name for name in VERBS if name.startswith(f"{words[0]} ")]
    if below and words[1:2] in (["-h"], ["--help"]):
        show_verbs(below)
        return
    if words[0] == "--version":
        print(f"ssno {package_version()}")
        return
    if broken := [word for word in words if "\0" in word]:
        raise ValueError(f"{broken[0]!r} holds a NUL character, which no name of a file or option does. Leave it out.")
    name, verb, rest = find_verb(words)
    check_flags(name, rest)
    try:
        # Libraries that are being imported turn an exception into one of their own, or into nothing.
        with on_signals(lambda *_: end_at_once(verb.interrupted)), importing():
            function = getattr(importlib.import_module(f"ssno.cli.{verb.module}"), verb.function)
        with on_signals(interrupt):
            call(name, verb, function, rest)
    except KeyboardInterrupt:
        say(STOPPED)
        raise SystemExit(verb.interrupted) from None


def call(name: str, verb: Verb, function: Callable[..., None], words: list[str]) -> None:
    """Call a verb with its options."""
    if verb.raw:
        function(words)
        return
    from ssno.cli.parser import parse, with_device

    parse(with_device(function) if verb.computes else function, words, prog=f"ssno {name}")


@contextmanager
def importing() -> Iterator[None]:
    """No garbage is looked for while libraries are imported, nor ever in what they leave: a second of some commands."""
    first = "torch" not in sys.modules and gc.isenabled()
    if first:
        gc.disable()
    try:
        yield
    finally:
        if first:
            gc.freeze()
            gc.enable()


@contextmanager
def on_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Inside this context SIGINT and SIGTERM call `handler`; in another than the main thread Python allows none."""
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def interrupt(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does, for any signal."""
    raise KeyboardInterrupt


def end_at_once(code: int) -> None:
    """End a command that has not begun."""
    say(STOPPED)
    sys.stderr.flush()
    os._exit(code)


def is_mistake(error: Exception) -> bool:
    """Whether an error tells users about their call or their files; anything else is a bug of ours.

    Such errors are what the system says about files, what is not installed, and every `ValueError` that a module of
    this package raised: one from inside a library means that we called it wrongly.
    """
    if isinstance(error, ValueError):
        inside = list(traceback.walk_tb(error.__traceback__))
        return Path(inside[-1][0].f_code.co_filename).is_relative_to(Path(__file__).parents[1])
    return isinstance(error, OSError | ImportError | MemoryError) or "allocate memory" in str(error)


def say(line: str, *, everyone: bool = False) -> None:
    """A line on stderr; of several processes one talks, or everyone."""
    if everyone or is_first():
        print(printable(line), file=sys.stderr)


def find_verb(words: list[str]) -> tuple[str, Verb, list[str]]:
    """The verb that the first one or two words name, and the words after it."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in VERBS:
            return name, VERBS[name], words[length:]
    below = [name for name in VERBS if name.startswith(f"{words[0]} ")]
    raise ValueError(unknown_name(" ".join(words[:2]) if below else words[0], below or list(VERBS)))


def show_verbs(names: Sequence[str] = tuple(VERBS)) -> None:
    """Verbs with a line each."""
    from rich.table import Table
    from rich.text import Text

    from ssno.base.terminal import Console

    table = Table(title="ssno: learn the solution operator of a time-dependent PDE", title_justify="left", box=None)
    table.add_column("verb", style="bold")
    table.add_column("what it does")
    for name in names:
        table.add_row(f"ssno {name}", VERBS[name].summary)
    console = Console()
    console.print(table)
    first = (" A first try: ", ("ssno demo", "bold")) if "demo" in names else ()
    console.print(Text.assemble("\nEvery verb has --help.", *first))
