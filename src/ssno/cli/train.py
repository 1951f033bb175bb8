"""`ssno train DATASET`: train a model, or resume a run.

    ssno train ks --model.d-state 32 --train.epochs 50
    ssno train ks --model ffno --recipe paper --data.resolution 64
    ssno train --config run.json
    ssno train --resume --name ks-ssno
    ssno train ks --nproc 2

Some words are read before the rest, because the rest depends on them: `--model NAME` (`NAME:tiny` for its smallest
size) chooses whose options `--model.*` are; `--recipe`, `--config` and the dataset, wherever it stands, say where the
defaults come from.
"""

import dataclasses
import itertools
import json as json_format
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Generic, get_args, get_type_hints

import tyro
from rich.table import Table

from ssno.base import byte_size, cost_rows, duration
from ssno.base.distributed_env import is_first
from ssno.base.formatting import printable
from ssno.base.terminal import Console
from ssno.cli.device import Device, computing_on
from ssno.cli.main import VERBS, say
from ssno.cli.main import run as run_command
from ssno.cli.options import moment
from ssno.data.datasets import generate_command
from ssno.data.load import find
from ssno.data.options import DataOptions
from ssno.data.windows import dataset_conventions
from ssno.models.registry import model_config
from ssno.pde.problems.problem import Axis
from ssno.runs.layout import is_run
from ssno.runs.log import Logger
from ssno.runs.options import Recipe, TrainOptions, recipe
from ssno.runs.run import ModelConfig, Run, leaves, read_run
from ssno.training.checks import check_resume
from ssno.training.estimate import estimate
from ssno.training.interruption import EXIT_DIVERGED, EXIT_INTERRUPTED, TrainingDiverged, TrainingInterrupted
from ssno.training.processes import launch
from ssno.training.task import task_of_run
from ssno.training.train import run_task

# What `ssno train --help` says about defaults: those that a run will use, which recipe and data may decide.
#
# The recipe completes a run for imaginary data of every kind (`Run.suited`, as it does for real ones). Options that
# then differ from the defaults of their dataclass are told as "by the recipe" with the values they may take, or, if
# they differ without a recipe too, as "from the data".

MOST_VALUES = 3
GRIDS = (4, 512)
CHANNELS = ((1, 0), (2, 4))
"""Predicted and known."""


def hints(run: Run[Any], *, recipe: Recipe | None, dataset: str) -> dict[str, str]:
    """What help says in place of a default, by the dotted names of the options that recipe or data change."""
    by_data, by_recipe = (completions(run, chosen, dataset) for chosen in (None, recipe))
    said = {}
    for name, usual in leaves(run.to_json()):
        if any(other[name] != usual for other in by_data):
            values = [other[name] for other in by_data]
            alike = all(value == values[0] for value in values)  # by the model
            said[name] = f"(default: {shown(values[0])})" if alike else "(from the data)"
        elif any(other[name] != usual for other in by_recipe):
            said[name] = f"(by the recipe{choices([other[name] for other in by_recipe])})"
    return said


def choices(values: Sequence[Any]) -> str:
    """Different values in words, if there are few. Axes that differ have values of their own, among these."""
    single = list(dict.fromkeys(shown(value) for value in values if not isinstance(value, tuple)))
    each = {shown(part) for value in values if isinstance(value, tuple) for part in value}
    if len(single) > MOST_VALUES or not each <= set(single):
        return ", depending on the data"
    return f": {' or '.join(single)}" + (", depending on the data" if len(single) > 1 else "")


def completions(run: Run[Any], recipe: Recipe | None, dataset: str) -> list[dict[str, Any]]:
    """The options of a run on imaginary data: one to three axes, periodic or with walls, coarse or fine."""
    found = []
    for count, points, channels in itertools.product((1, 2, 3), GRIDS, CHANNELS):
        for periodic in itertools.product((True, False), repeat=count):
            axes = [Axis(f"x{i}", 1.0, points, periodic=flag) for i, flag in enumerate(periodic)]
            try:
                suited = run.suited(axes, *channels, dataset=dataset, recipe=recipe)
            except ValueError:  # a model that is not made for such data
                continue
            found.append(dict(leaves(suited.to_json())))
    return found


def shown(value: Any) -> str:
    """A value in few digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def with_hints(value: Any, said: Mapping[str, str], where: str = "") -> Any:
    """The same description, of a type whose help says these words."""
    types, options, values = get_type_hints(type(value), include_extras=True), [], {}
    for option in fields(value):
        name, mine = f"{where}{option.name}", getattr(value, option.name)
        kind: Any = types[option.name]
        if is_dataclass(mine):
            mine = with_hints(mine, said, f"{name}.")
            kind = type(mine)
        if name in said:
            kind = Annotated[kind, tyro.conf.arg(help_behavior_hint=said[name])]
        options.append((option.name, kind, field(default=mine)))
        values[option.name] = mine
    described = {"__doc__": type(value).__doc__}
    base: Any = Run[type(values["model"])] if isinstance(value, Run) else type(value)  # type: ignore[misc]
    made = make_dataclass(type(value).__name__, options, bases=(base,), namespace=described, frozen=True)
    return made(**values)


# `ssno train DATASET`: train a model, or resume a run.


@dataclass(frozen=True)
class Command(Generic[ModelConfig]):
    """Train a model to forecast trajectories, or resume a run.

    `--model NAME` chooses the model (`ssno models` lists them; NAME:tiny is its smallest size), `--recipe fast|paper`
    the defaults of --train.*, `--config FILE` takes everything from a file. Options given here override all of them.
    A run is written to ./runs/NAME: config.json, model.safetensors, last/ and best/ checkpoints, metrics.jsonl. Ctrl-C
    and SIGTERM save and exit with code 75; a run that diverges keeps its last good checkpoint and exits with code 3.
    """

    dataset: tyro.conf.Positional[str] = "ks"
    """A dataset's name, looked up in ./data, or a file or folder of your own."""
    run: Annotated[Run[ModelConfig], tyro.conf.arg(name="")] = field(default_factory=Run)
    name: str | None = None
    """Name of the run; by default dataset and model."""
    out: Path = Path("runs")
    """Folder that holds runs."""
    resume: bool = False
    """Go on with the run of this name; `--resume auto` starts it if it is new."""
    overwrite: bool = False
    """Delete the run of this name first."""
    generate: bool = False
    """Make the dataset first if it is missing."""
    dry_run: bool = False
    """Measure a few steps, forecast time, memory and disk, and write nothing."""
    check_resume: bool = False
    """Prove on this run that a kill and a resume change nothing, bit by bit; writes nothing."""
    stop_after: int | None = None
    """Stop after so many steps of the run in all, as if interrupted."""
    nproc: int = 1
    """Train with so many processes on this machine, each on its share of every batch and, if there are any, its GPU."""
    stop_at: str | None = None
    """Stop at a time of day (06:00) or after a while (55m, 1h30m), as if interrupted: save, exit with code 75."""
    tensorboard: bool = False
    """Also write TensorBoard's files to the run; needs ssno[tensorboard]."""
    wandb: bool = False
    """Also log to Weights & Biases; needs ssno[wandb]."""
    device: Device = "auto"
    json: bool = False
    """Print the result as JSON."""


def train(arguments: list[str]) -> None:
    """Parse the words after `ssno train` and do what they say."""
    alone, wanted = take_out(arguments, "--nproc")
    if (together := whole_number(wanted.get("--nproc", "1"), option="--nproc")) > 1:
        raise SystemExit(launch(["ssno", "train", *alone], processes=together))
    alone, auto = resume_auto(alone)
    words, chosen = take_out(alone, "--model", "--recipe", "--config")
    command = parse(words, chosen)
    with computing_on(command.device):
        execute(command, words, chosen, auto=auto)


def execute(command: Command[Any], words: list[str], chosen: dict[str, str], *, auto: bool) -> None:
    """Train, resume, check or foresee, as the command says."""
    folder = command.out / (command.name or f"{Path(command.dataset).stem}-{command.run.model.name}")
    resume = command.resume and (not auto or is_run(folder))
    end = None if command.stop_at is None else moment(command.stop_at, datetime.now(), option="--stop-at")
    given = given_names(words, chosen, named=named_dataset(words, command.run) is not None)
    clash = sorted(name for name in given - {"model.model"} if name.startswith("model."))
    if command.run.start_from is not None and clash:
        raise ValueError(f"`--start-from` takes the model of that run as it is. Leave out {', '.join(clash)}.")
    units = sorted({"train.normalisation", "train.predict_increment"} & given)
    if command.run.start_from is not None and units and not command.run.train.refit_normalisation:
        raise ValueError(
            f"`--start-from` keeps the units of that run. Leave out {', '.join(units)}, or give "
            "--train.refit-normalisation to fit them to these data."
        )
    run = overridden(read_run(folder), command.run, given) if resume else command.run
    try:
        data, valid = load(run.data, generate=command.generate, dry_run=command.dry_run)
        if not resume:
            named = None if "--config" in chosen else chosen.get("--recipe", "fast")
            run = run.completed(data, recipe=named, given=given)  # type: ignore[arg-type]
        if command.check_resume:
            report_check(run, as_json=command.json)
            return
        task = task_of_run(run, data, valid, resumed=folder if resume else None)
        if command.dry_run:
            cost = estimate(task).to_json()
            if is_first():
                report_estimate(cost, as_json=command.json)
            return
        run_task(
            task,
            folder=folder,
            resume=resume,
            overwrite=command.overwrite,
            stop_after=command.stop_after,
            stop_at=end,
            loggers=[name for name in get_args(Logger) if getattr(command, name)],
        )
    except TrainingInterrupted as stopped:
        say(f"ssno: {stopped}")
        raise SystemExit(EXIT_INTERRUPTED) from stopped
    except TrainingDiverged as stopped:
        say(f"ssno: {stopped}")
        raise SystemExit(EXIT_DIVERGED) from stopped
    if is_first():  # of several processes one talks
        report_run(folder, as_json=command.json)


def whole_number(text: str, *, option: str) -> int:
    """A number from 1 on, as it was typed."""
    try:
        if (value := int(text)) >= 1:
            return value
    except ValueError:
        pass
    raise ValueError(f"`{option}` must be a whole number from 1 on, got {text!r}.")


def take_out(arguments: list[str], *flags: str) -> tuple[list[str], dict[str, str]]:
    """Split off flags with one value, `--flag value` or `--flag=value`."""
    rest, found, words = [], {}, iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in flags:
            rest.append(word)
            continue
        if not equals:
            value = next(words, "")
        if not value or value.startswith("--"):
            raise ValueError(f"`{flag}` needs a value.")
        found[flag] = value
    return rest, found


def parse(words: list[str], chosen: dict[str, str]) -> Command[Any]:
    """The command line as a typed command, whose types depend on the chosen model."""
    run: Run[Any] = read_run(chosen["--config"]) if "--config" in chosen else Run()
    if "--model" in chosen:
        run = replace(run, model=model_config(chosen["--model"]))
    dataset = named_dataset(words, run) or run.data.name
    usual = dataset_conventions(dataset)
    if "--config" not in chosen:
        run = replace(run, context_time=usual.context_time)
    if "--recipe" in chosen or "--config" not in chosen:
        run = replace(run, train=recipe(chosen.get("--recipe", "fast"), dataset=dataset))  # type: ignore[arg-type]
    default: Command[Any] = Command(dataset=dataset, run=run)
    if {"-h", "--help"} & set(words):
        named = None if "--config" in chosen else chosen.get("--recipe", "fast")
        show_help(default, named)  # type: ignore[arg-type]
    command = read(words, default)
    return replace(command, run=replace(command.run, data=replace(command.run.data, name=command.dataset)))


def read(words: list[str], default: Command[Any]) -> Command[Any]:
    """The words over a command's defaults."""
    typed: Any = Command[type(default.run.model)]  # type: ignore[misc]
    command: Command[Any] = tyro.cli(typed, args=words, default=default, prog="ssno train", description=Command.__doc__)
    return command


def show_help(default: Command[Any], named: Recipe | None) -> None:
    """Options with the defaults that recipe and data will give them; the end of the process."""
    run = with_hints(default.run, hints(default.run, recipe=named, dataset=default.dataset))
    option: Any = ("run", Annotated[type(run), tyro.conf.arg(name="")], field(default=run))
    base: Any = Command[type(run.model)]  # type: ignore[misc]
    typed: Any = dataclasses.make_dataclass("Command", [option], bases=(base,), frozen=True)
    told = typed(dataset=default.dataset, run=run)
    tyro.cli(typed, args=["--help"], default=told, prog="ssno train", description=Command.__doc__)


def named_dataset(words: list[str], run: Run[Any]) -> str | None:
    """The dataset among the words, wherever it stands; only a parser that knows all options tells it from a value."""
    if not words or not words[0].startswith("-"):
        return words[0] if words else None
    if {"-h", "--help"} & set(words) or all(word.startswith("-") for word in words):
        return None
    return read(words, Command(dataset="", run=run)).dataset or None


def given_names(words: list[str], chosen: dict[str, str], *, named: bool) -> set[str]:
    """Fields that the command line names, as `model.d_state`; `--recipe` and `--config` name many.

    `named`: it names the dataset.
    """
    typed = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in words if word.startswith("--")}
    typed = {re.sub(r"(^|\.)no_(\w+)$", r"\1\2", name) for name in typed}
    typed |= {"data.name"} if named else set()
    typed |= {"model.model"} if "--model" in chosen else set()
    if "--recipe" in chosen:  # its batch size depends on data and processes: a run keeps the one it began with
        typed |= {f"train.{option.name}" for option in dataclasses.fields(TrainOptions)} - {"train.batch_size"}
    return typed | ({"data", "model", "train", "window", "context_time"} if "--config" in chosen else set())


def overridden(saved: Run[Any], wanted: Run[Any], given: set[str]) -> Run[Any]:
    """A saved run with the fields named in `given` as they are wanted now; whether they may change, the run decides."""
    values, now = saved.to_json(), dict(leaves(wanted.to_json()))
    for name in now:
        *path, last = name.split(".")
        if any(name == other or name.startswith(f"{other}.") for other in given):
            section = values
            for part in path:
                section = section.setdefault(part, {})
            section[last] = now[name]
    return Run.from_json(values)


def resume_auto(arguments: list[str]) -> tuple[list[str], bool]:
    """Take `auto` out of `--resume auto`, and whether it was there."""
    for place, word in enumerate(arguments[:-1]):
        if word == "--resume" and arguments[place + 1] == "auto":
            return [*arguments[: place + 1], *arguments[place + 2 :]], True
    return ["--resume" if word == "--resume=auto" else word for word in arguments], "--resume=auto" in arguments


def load(options: DataOptions, *, generate: bool, dry_run: bool = False) -> tuple[Any, Any]:
    """Training and validation trajectories, made first if that was asked for; a dry run forecasts what that costs."""
    if generate and options.path is None:
        wanted: dict[str, Any] = {} if options.viscosity is None else {"viscosity": options.viscosity}
        preset: Any = options.preset or "paper"
        try:
            find(options.name, root=Path("data"), preset=options.preset, viscosity=options.viscosity)
        except FileNotFoundError:
            words = [*generate_command(options.name, preset, **wanted).split()[1:], *(["--dry-run"] if dry_run else [])]
            try:
                run_command(words)
            except SystemExit as left:
                if left.code != VERBS["data generate"].interrupted:
                    raise
                raise SystemExit(EXIT_INTERRUPTED) from left  # the training is interrupted with it
            if dry_run:
                print("This was about making the data. Training is forecast once they are there.", file=sys.stderr)
                raise SystemExit(0) from None
    return options.load("train"), options.load("valid")


def report_estimate(cost: dict[str, Any], *, as_json: bool) -> None:
    """The forecast of a dry run."""
    if as_json:
        print(json_format.dumps(cost, indent=2))
        return
    table = Table(title="dry run: estimated cost; nothing was written", title_justify="left")
    table.add_column("what")
    table.add_column("how much", justify="right")
    table.add_row("parameters", f"{cost['parameters']:,}")
    if cost["seconds"] is None:
        table.add_row("memory", byte_size(cost["memory_bytes"]))
        table.add_row("memory that is free", byte_size(cost["free_memory_bytes"]))
        table.add_row("steps", f"{cost['steps']:,}")
    else:
        table.add_row("steps", f"{cost['steps']:,} of {duration(cost['seconds_per_step'])}")
        for points, seconds in (cost["seconds_on"] or {}).items():
            table.add_row(f"a step on {points} points", duration(seconds))
        for row in cost_rows(cost["seconds"], cost["memory_bytes"], cost["disk_bytes"]):
            table.add_row(*row)
    Console().print(table)
    if cost["seconds"] is None:
        print(
            "The run does not fit, so no step was tried. Lower --train.batch-size; if the model is unrolled, "
            "--train.unroll.gradient-checkpointing, --train.unroll.truncate or fewer --train.unroll.frames need less."
        )


def report_check(run: Run[Any], *, as_json: bool) -> None:
    """The verdict of `--check-resume`; a run that is not exact exits with code 1."""
    seen = check_resume(run)
    if as_json:
        print(json_format.dumps({**dataclasses.asdict(seen), "exact": seen.exact}, indent=2))
    elif seen.exact:
        print(
            f"Exact: killed after step {seen.killed_after} of {seen.steps} and resumed, the run ended with all "
            f"{seen.tensors} tensors bitwise equal to those of an undisturbed run."
        )
    else:
        print(f"Not exact: {len(seen.different)} of {seen.tensors} differ: {', '.join(seen.different[:5])}.")
    if not seen.exact:
        raise SystemExit(1)


def report_run(folder: Path, *, as_json: bool) -> None:
    """Where the run is and how good its best weights are."""
    from ssno.runs.layout import LOG
    from ssno.runs.log import read_log

    lines = [line for line in read_log(folder) if line.get("best") is True]
    if not lines:  # a run that began before somebody lost its log
        say(f"ssno: {folder / LOG} does not name a best epoch, so no error is shown; the weights are there.")
    line = lines[-1] if lines else {}
    best = {key: line[key] for key in line if key.startswith("rel_l2") and isinstance(line[key], int | float)}
    if as_json:
        print(
            json_format.dumps({"folder": str(folder), "epoch": line["epoch"] + 1 if line else None, **best}, indent=2)
        )
        return
    if not line:
        print(printable(f"The run is in {folder}."))
        return
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in best.items())
    print(printable(f"Best epoch {line['epoch'] + 1}: {numbers}. The run is in {folder}."))
