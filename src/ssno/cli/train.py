"""`ssno train DATASET`: train a model, or resume a run.

    ssno train ks --model.d-state 32 --train.epochs 50
    ssno train ks --model ffno --recipe paper --data.resolution 64
    ssno train --config run.json
    ssno train --resume always --name ks-ssno
    ssno train ks --nproc 2
    ssno train ks --mesh data=2,space=2

`--model`, `--recipe` and `--config` are read first, because they decide which options there are and their defaults.
The options that the command line names become a run by `ssno.runs.run.resolve_run`.
"""

import argparse
import itertools
import json as json_format
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, make_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, get_args, get_type_hints

import tyro
from rich.table import Table

from ssno.base import byte_size, cost_rows, duration, require_one_of
from ssno.base.distributed_env import is_first, is_launched, sharing_fields
from ssno.base.formatting import printable, stem
from ssno.base.terminal import Console
from ssno.cli.main import VERBS, say
from ssno.cli.main import run as run_command
from ssno.cli.options import moment
from ssno.cli.parser import Device, computing_on
from ssno.cli.parser import parse as parse_words
from ssno.data.datasets import generate_command
from ssno.data.load import DataOptions, find
from ssno.data.trajectories import Trajectories
from ssno.layers.space import MeshShape
from ssno.models.registry import model_config
from ssno.pde.geometry import Axis
from ssno.runs.checkpoint import is_run
from ssno.runs.log import Logger
from ssno.runs.options import Recipe, recipe
from ssno.runs.run import DataShape, ModelConfig, Run, leaves, read_description, read_run, resolve_run
from ssno.training.checks import check_resume
from ssno.training.estimate import estimate
from ssno.training.loop import run_task
from ssno.training.processes import (
    EXIT_DIVERGED,
    EXIT_INTERRUPTED,
    EXIT_LOST,
    TrainingDiverged,
    TrainingInterrupted,
    launch,
    lost_another,
)
from ssno.training.task import task_of_run

# What `ssno train --help` says about defaults: those that a run will use, which recipe and data may decide.
#
# The recipe completes a run for imaginary data of every kind (`Run.completed`, as for real ones). Options that then
# differ from the defaults of their dataclass are shown as "by the recipe" with the values they may take, or, if they
# differ without a recipe too, as "from the data".

MOST_VALUES = 3
GRIDS = (4, 512)
CHANNELS = (("u", ""), ("uv", "abcd"))
"""Names of predicted and of context fields."""


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
                completed = run.completed(DataShape(dataset, axes, *channels), recipe=recipe)
            except ValueError:  # a model that is not made for such data
                continue
            found.append(dict(leaves(completed.to_json())))
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


Resume = Literal["never", "auto", "always"]


@dataclass(frozen=True)
class Command(Generic[ModelConfig]):
    """Train a model to forecast trajectories, or resume a run.

    `--model NAME` chooses the model (`ssno models` lists them; NAME:tiny is its smallest size); `--model NAME --help`
    shows its options. `--recipe fast|paper` sets the defaults of --train.* and, for fast, of the model's boundary,
    coordinates and modes; `--config FILE` takes everything from a file. Options given here override all of them.
    A run is written to ./runs/NAME: config.json, model.safetensors, last/ and best/ checkpoints, metrics.jsonl. Ctrl-C
    and SIGTERM save and exit with code 75; a run that diverges keeps its last good checkpoint and exits with code 3.
    """

    dataset: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[DATASET]")] = "ks"
    """A dataset's name, looked up in ./data, or a file or folder of your own."""
    run: Annotated[Run[ModelConfig], tyro.conf.arg(name="")] = field(default_factory=Run)
    name: str | None = None
    """Name of the run; by default dataset and model."""
    out: Path = Path("runs")
    """Folder that holds runs."""
    resume: Resume = "never"
    """Continue the run of this name: always (also --resume alone), or auto: if it exists, else start it."""
    overwrite: bool = False
    """Delete the run of this name first."""
    generate: bool = False
    """Make the dataset first if it is missing."""
    dry_run: bool = False
    """Measure a few steps, forecast time, memory and disk, and write nothing."""
    check_resume: bool = False
    """Test on this run that resuming after a kill is bitwise exact; writes nothing."""
    stop_after: int | None = None
    """Stop after this many steps of the run in total, as if interrupted."""
    nproc: int = 1
    """Processes on this machine that train together, each on its share of every batch and, if there is one, its GPU."""
    mesh: str | None = None
    """Processes that take trajectories of their own, and pieces of every field: data=2,space=2 (or space=2x2 along each
    axis). Starts as many, unless torchrun has."""
    fsdp: bool = False
    """Every process holds a shard of each weight, gradient and optimiser state (PyTorch's FSDP2)."""
    gradient_checkpointing: bool = False
    """Compute spatial blocks again in the backward pass: less memory, a third more time."""
    stop_at: str | None = None
    """Stop at a time of day (06:00) or after a while (55m, 1h30m), as if interrupted: save, exit with code 75."""
    tensorboard: bool = False
    """Also write TensorBoard's files to the run; needs ssno[tensorboard]."""
    wandb: bool = False
    """Also log to Weights & Biases; needs ssno[wandb]."""
    device: Device = "auto"
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True)
class Call:
    """A command line: what it asks for, the options of a run that it names, and where their defaults come from."""

    command: Command[Any]
    overrides: Mapping[str, Any]
    config: Run[Any] | None
    """The run of `--config`."""
    states_window: bool
    """Whether that file states `window.size`, which is kept unless the command line changes the model's memory."""
    recipe: Recipe | None
    """What completes the run; None with `--config`, which leaves nothing to a recipe."""
    named_recipe: Recipe | None
    """The one that the command line names."""

    def run(self) -> Run[Any]:
        """The run, to be completed for its data."""
        return resolve_run(self.overrides, recipe=self.recipe, base=self.config)

    def given(self, run: Run[Any]) -> set[str]:
        """The options of the run that data and recipe leave alone."""
        kept = self.config and self.states_window and run.model.frames_seen() == self.config.model.frames_seen()
        return {*self.overrides, *(["window.size"] if kept else [])}


def train(arguments: list[str]) -> None:
    """Parse the words after `ssno train` and do what they say."""
    first, words = first_options(arguments)
    shape = None if first.mesh is None else MeshShape.parse(first.mesh)
    spread = {"--fsdp", "--gradient-checkpointing"} & set(words) | ({"--mesh"} if shape else set())
    if spread and (alone := {"--dry-run", "--check-resume"} & set(words)):
        raise ValueError(f"`{min(alone)}` looks at one process with whole fields. Leave out `{min(spread)}`.")
    processes = first.nproc if shape is None or is_launched() else shape.processes
    if processes > 1:
        if first.nproc not in (1, processes):
            raise ValueError(f"`--mesh {shape}` is made of {processes} processes, but `--nproc` is {first.nproc}.")
        given = {f"--{name}": getattr(first, name) for name in ("model", "recipe", "config", "resume", "mesh")}
        words += [word for flag, value in given.items() if value is not None for word in (flag, value)]
        raise SystemExit(launch(["ssno", "train", *words], processes=processes))
    with sharing_fields(1 if shape is None else shape.pieces):
        call = parse(arguments)
        with computing_on(call.command.device):
            execute(call, mesh=shape)


def run_name(call: Call, run: Run[Any]) -> str:
    """Dataset and model; the file or folder that was read stands for a dataset that is not named."""
    data = run.data.name if "data.name" in call.overrides else run.data.path or run.data.name
    return f"{stem(Path(data))}-{run.model.name}"


def execute(call: Call, *, mesh: MeshShape | None = None) -> None:
    """Train, resume, check or estimate, as the command says."""
    command, run = call.command, call.run()
    folder = command.out / (command.name or run_name(call, run))
    resume = command.resume == "always" or (command.resume == "auto" and is_run(folder))
    end = None if command.stop_at is None else moment(command.stop_at, datetime.now(), option="--stop-at")
    if run.start_from is not None:
        check_start(call.overrides, run)
    run = resumed_run(folder, call) if resume else run
    try:
        data, valid = load(run.data, generate=command.generate, dry_run=command.dry_run)
        if not resume:
            run = run.completed(data, recipe=call.recipe, given=call.given(run))
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
            mesh=mesh,
            fsdp=command.fsdp,
            gradient_checkpointing=command.gradient_checkpointing,
        )
    except TrainingInterrupted as stopped:
        say(f"ssno: {stopped}")
        raise SystemExit(EXIT_INTERRUPTED) from stopped
    except TrainingDiverged as stopped:
        say(f"ssno: {stopped}")
        raise SystemExit(EXIT_DIVERGED) from stopped
    except RuntimeError as error:
        if not lost_another(error):
            raise
        lost = f"ssno: another process of this training is gone ({error}). What is saved goes on with --resume always."
        say(lost, everyone=True)  # it may be the first one that is gone
        raise SystemExit(EXIT_LOST) from error
    if is_first():  # of several processes one talks
        report_run(folder, as_json=command.json)


def check_start(overrides: Mapping[str, Any], run: Run[Any]) -> None:
    """Refuse options that the weights of `--start-from` have decided."""
    if clash := sorted(name for name in overrides if name.startswith("model.") and name != "model.model"):
        raise ValueError(f"`--start-from` takes the model of that run as it is. Leave out {', '.join(clash)}.")
    units = sorted({"train.normalisation", "train.predict_increment", "train.conserve_mean"} & overrides.keys())
    if units and not run.train.refit_normalisation:
        raise ValueError(
            f"`--start-from` uses the normalisation of that run. Leave out {', '.join(units)}, or give "
            "--train.refit-normalisation to fit it to these data."
        )


def resumed_run(folder: Path, call: Call) -> Run[Any]:
    """The run in a folder with the options that the command line names; whether they may change, the run decides."""
    saved, overrides = read_run(folder), dict(call.overrides)
    if call.config is not None:
        overrides = dict(leaves(call.config.to_json())) | overrides
    elif call.named_recipe is not None:  # a run keeps its batch size, which depends on data and processes
        dataset = overrides.get("data.name", saved.data.name)
        options = asdict(recipe(call.named_recipe, dataset=dataset, suited=saved.model.training))
        options.pop("batch_size")
        overrides = dict(leaves({"train": options})) | overrides
    model = model_config(str(overrides.pop("model.model", saved.model.name)))
    if model.name != saved.model.name:
        raise ValueError(f"The run in {folder} trains {saved.model.name!r}, not {model.name!r}. Choose another name.")
    return resolve_run(overrides, recipe=None, base=saved)


def first_options(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options that must be known before the others can be read, and the words that are left."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--model", "--recipe", "--config", "--mesh"):
        parser.add_argument(flag)
    parser.add_argument("--nproc", default="1")
    parser.add_argument("--resume", nargs="?", const="always", default="never")
    try:
        first, words = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise ValueError(f"`{error.argument_name}` needs a value.") from None
    require_one_of("--resume", first.resume, get_args(Resume))
    if not (first.nproc.isdecimal() and int(first.nproc) >= 1):
        raise ValueError(f"`--nproc` must be a whole number from 1 on, got {first.nproc!r}.")
    first.nproc = int(first.nproc)
    return first, words


def parse(arguments: list[str]) -> Call:
    """A command line as a typed command, whose types depend on the chosen model, and the options that it names."""
    first, words = first_options(arguments)
    description = {} if first.config is None else read_description(first.config)
    config = None if first.config is None else Run.from_json(description)
    completing: Recipe | None = None if config else first.recipe or "fast"
    chosen: dict[str, Any] = {} if first.model is None else {"model.model": first.model}
    likely = {"data.name": words[0]} if words and not words[0].startswith("-") else {}
    run = resolve_run(chosen | likely, recipe=completing, base=config)
    if {"-h", "--help"} & set(words):
        show_help(Command(dataset=run.data.name, run=run), completing)
    typed: Any = Command[type(run.model)]  # type: ignore[misc]
    default: Command[Any] = Command(dataset="", run=run, nproc=first.nproc, mesh=first.mesh, resume=first.resume)
    command = parse_words(typed, words, default=default, prog="ssno train", description=Command.__doc__)
    named = named_fields(words)
    chosen |= {name: value for name, value in leaves(command.run.to_json()) if name in named}
    chosen |= {"data.name": command.dataset} if command.dataset else {}
    if config is not None and first.recipe is not None:
        dataset = chosen.get("data.name", config.data.name)
        config = replace(config, train=recipe(first.recipe, dataset=dataset, suited=run.model.training))
    states_window = "size" in description.get("window", {})
    return Call(command, chosen, config, states_window=states_window, recipe=completing, named_recipe=first.recipe)


def named_fields(words: Sequence[str]) -> set[str]:
    """The options among the words, as fields: `--train.no-predict-increment` is `train.predict_increment`."""
    flags = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in words if word.startswith("--")}
    return {re.sub(r"(^|\.)no_(\w+)$", r"\1\2", flag) for flag in flags}


def show_help(default: Command[Any], recipe: Recipe | None) -> None:
    """Options with the defaults that recipe and data will give them; the end of the process."""
    run = with_hints(default.run, hints(default.run, recipe=recipe, dataset=default.dataset))
    option: Any = ("run", Annotated[type(run), tyro.conf.arg(name="")], field(default=run))
    base: Any = Command[type(run.model)]  # type: ignore[misc]
    typed: Any = make_dataclass("Command", [option], bases=(base,), frozen=True)
    shown = typed(dataset=default.dataset, run=run)
    parse_words(typed, ["--help"], default=shown, prog="ssno train", description=Command.__doc__)


def load(options: DataOptions, *, generate: bool, dry_run: bool = False) -> tuple[Trajectories, ...]:
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
    return options.load_splits("train", "valid")


def report_estimate(cost: dict[str, Any], *, as_json: bool) -> None:
    """The forecast of a dry run."""
    if as_json:
        print(json_format.dumps(cost, indent=2))
        return
    table = Table("what", title="dry run: estimated cost; nothing was written", title_justify="left")
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
        print(json_format.dumps({**asdict(seen), "exact": seen.exact}, indent=2))
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
    from ssno.runs.checkpoint import LOG
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
