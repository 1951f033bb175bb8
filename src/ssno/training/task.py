"""What is to be trained: a model with its units, its data and its options, put together in one place.

    task_for(run)                          everything from a description (`ssno.runs.run`)
    task_for(SSNOConfig(), data)           a model still to be built: the recipe completes it for these data
    task_for(model, data)                  a model of your own making, taken as it is

All three follow one rule: what is not said comes from the data (channels, axes, context_time) and from
the recipe (options; for models still to be built also their settings).
"""

import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from ssno.base.checks import did_you_mean
from ssno.base.memory import free_memory
from ssno.base.provenance import provenance
from ssno.data.envelope import Climatology, Surveyor
from ssno.data.grids import coarse_points, fitting
from ssno.data.normalise import Normalisers, check_finite, fit, reuse_units
from ssno.data.splits import holdout
from ssno.data.trajectories import Trajectories, trajectory_bytes
from ssno.data.windows import ContextTime, Window, check_reflection, dataset_conventions
from ssno.forecasting.forecaster import Forecaster
from ssno.models.config import OperatorConfig
from ssno.models.pretrained import read_model_document
from ssno.models.registry import model_config
from ssno.pde.geometry import CARTESIAN
from ssno.runs.load import Units, read_units
from ssno.runs.open import RunFolder, open_run
from ssno.runs.options import Recipe, TrainOptions, check_frames
from ssno.runs.options import recipe as named_recipe
from ssno.runs.run import Run, check_window, leaves, resolve_run
from ssno.training.batches import on_finest, on_grids


@dataclass(frozen=True)
class Task:
    """A forecaster to be trained, trajectories to train and to validate on, how, and the words for config.json."""

    forecaster: Forecaster
    data: Trajectories
    valid: Trajectories
    options: TrainOptions
    description: dict[str, Any]
    files: Int[np.ndarray, " n"]
    """In which file every training trajectory is, or was before it was read into memory."""
    notes: tuple[str, ...] = ()
    """What the log should say about the start."""
    climatology: Climatology | None = None
    """Of the training data, to be stored with the run."""

    def sections(self) -> dict[str, Any]:
        """What config.json says about the run."""
        counted = {"train": describe_data(self.data), "valid": describe_data(self.valid)}
        return {"run": self.description, "data": counted, "provenance": provenance()}


def task_for(
    model: nn.Module | OperatorConfig | Run[Any],
    data: Trajectories | None = None,
    *,
    valid: Trajectories | None = None,
    recipe: Recipe = "fast",
    options: TrainOptions | None = None,
    window: Window | None = None,
    context_time: ContextTime | None = None,
    resumed: Path | None = None,
    **changes: Any,
) -> Task:
    """Put a training together; see `ssno.training.train` for the arguments, `resumed` is the folder of a run."""
    if isinstance(model, Run):
        if data is not None or valid is not None or options or window or context_time or changes:
            raise ValueError(
                "When training from a `Run`, pass no other options; use `dataclasses.replace(run, ...)` to change it."
            )
        data, valid = model.data.load_splits("train", "valid")
        return task_of_run(resolve_run({}, recipe=None, base=model, data=data), data, valid, resumed=resumed)
    if not isinstance(model, nn.Module | OperatorConfig):
        came = f"the class {model.__name__}" if isinstance(model, type) else repr(model)
        raise TypeError(
            f"`model` must be a description such as `SSNOConfig()`, a `torch.nn.Module` or a `Run`, got {came}. "
            "`ssno.models.model_config(name)` makes the description of a model by its name."
        )
    if not isinstance(data, Trajectories):
        raise TypeError(
            f"`data` must be `Trajectories` to train on, got {type(data).__name__}. Use `load_dataset(file)`, or "
            "`Trajectories.from_array(array)` with the axes (trajectory, time, channel, *grid)."
        )
    known = [option.name for option in fields(TrainOptions)]
    if unknown := sorted({*changes} - {*known}):
        meant = {"lr": "learning_rate"}.get(unknown[0], unknown[0])
        raise TypeError(f"`train` has no option `{unknown[0]}`.{did_you_mean(meant, known)} Known: {', '.join(known)}.")
    if valid is None:
        data, valid = held_out(data)
    described_by = model if isinstance(model, OperatorConfig) else getattr(model, "config", None)
    options = (
        replace(options, **changes)
        if options
        else named_recipe(
            recipe,
            n_dims=len(data.axes),
            dataset=data.name,
            suited=described_by.training if isinstance(described_by, OperatorConfig) else None,
            **changes,
        )
    )
    context_time = context_time or dataset_conventions(data.name).context_time
    if isinstance(model, OperatorConfig):
        usual = dict(leaves(type(model)().to_json()))
        chosen = {f"model.{name}": value for name, value in leaves(model.to_json()) if value != usual[name]}
        base = Run(model=model, train=options, context_time=context_time)
        model = resolve_run(chosen, recipe=recipe, base=base, data=data).build_model()
    described = {"train": asdict(options), "data": describe_data(data), "valid": describe_data(valid)}
    config = getattr(model, "config", None)
    if window is not None and isinstance(config, OperatorConfig):
        check_window(config, window)
    window = window or Window(size=frames_seen(model))
    data, valid = fitting_data(model, data, valid, options)
    return checked(model, data, valid, options, window=window, context_time=context_time, description=described)


def task_of_run(run: Run[Any], data: Trajectories, valid: Trajectories, *, resumed: Path | None = None) -> Task:
    """The training that a run describes, on its data; a resumed one has its weights and units in its folder."""
    if resumed is None and run.train.grids and max(run.train.grids) < data.axes[0].points:
        grid = coarse_points(data.axes, max(run.train.grids))
        run = replace(run, data=replace(run.data, resolution=grid[0], reduction=fitting(data.axes, grid)))
    units, source, notes = None, None, []
    if resumed is not None:
        document = read_model_document(resumed)
        units = read_units(resumed, document)
        if run.start_from is not None:
            own = document["config"]
            run = replace(run, model=model_config(str(own.get("model"))).from_json(own))
    if resumed is not None or run.start_from is None:
        model: nn.Module = run.build_model()
        data, valid = fitting_data(model, data, valid, run.train)
    else:
        source = open_run(run.start_from)
        model = source.forecaster.model.train()
        data, valid = fitting_data(model, data, valid, run.train)
        if refer_to_grid(model, data, source):
            notes.append(f"kernels of {run.start_from} were continued onto this grid, now their reference")
        run = replace(run, model=model.config)
        if not run.train.refit_normalisation:
            theirs = source.forecaster
            chosen = replace(
                run.train,
                normalisation=theirs.normalisers.state.method,
                predict_increment=theirs.predict_increment,
                conserve_mean=theirs.conserve_mean,
            )
            run = replace(run, train=chosen)
            notes.append(f"units are those of {run.start_from}; --train.refit-normalisation fits them to these data")
    task = checked(
        model,
        data,
        valid,
        run.train,
        window=run.window,
        context_time=run.context_time,
        description=run.to_json(),
        units=units,
        source=None if source is None or run.train.refit_normalisation else source.forecaster.normalisers,
    )
    return replace(task, notes=tuple(notes))


def refer_to_grid(model: Any, data: Trajectories, source: RunFolder) -> bool:
    """Let weights of an earlier run refer to the grid of the data that they are trained on now; whether they changed.

    In the same box kernels keep their lengths; elsewhere they are taken as they are, in units of the grid.
    """
    if not hasattr(model, "refer_to"):
        return False
    before, shape = source.forecaster.spacing, tuple(axis.points for axis in data.axes)
    same_box = source.dataset == data.name
    if before is not None and source.grid is not None:
        lengths = zip(source.grid, before, shape, data.spacing, strict=True)
        same_box |= all(math.isclose(n * step, m * now, rel_tol=1e-6) for n, step, m, now in lengths)
    step = (1.0,) * len(shape)
    if before is not None and same_box:
        step = tuple(now / then for now, then in zip(data.spacing, before, strict=True))
    model.refer_to(shape, spacing=data.spacing, step=step)
    return any(ratio != 1 for ratio in step)


def fitting_data(
    model: nn.Module, data: Trajectories, valid: Trajectories, options: TrainOptions
) -> tuple[Trajectories, Trajectories]:
    """Training and validation data on the finest training grid; refused if they do not fit the model on every one."""
    data, valid = on_finest(data, options.grids), on_finest(valid, options.grids)
    for trajectories in (*on_grids(data, options.grids), valid):
        check_fit(model, trajectories)
    return data, valid


def checked(
    model: nn.Module,
    data: Trajectories,
    valid: Trajectories,
    options: TrainOptions,
    *,
    window: Window,
    context_time: ContextTime,
    description: dict[str, Any],
    units: Units | None = None,
    source: Normalisers | None = None,
) -> Task:
    """A task of a model and data that fit it; options that do not are refused before anything is computed or written.

    A resumed run brings its `units`; weights of another run bring those of their `source`.
    """
    check_reflection(options.reflect, data)
    if options.conserve_mean and data.geometry is not CARTESIAN:
        raise ValueError("`train.conserve_mean` needs a grid of equal cells; a sphere and clouds of points have none.")
    window.plan(len(valid.times))
    check_frames(options.unroll.stages(options.epochs), window, len(data.times))
    if not len(valid):
        raise ValueError(f"`valid` of {valid.name!r} has no trajectories, and picks the best weights. Give it some.")
    files, surveyor = data.rows[:, 0], Surveyor(data)
    if not options.num_workers:  # read once: statistics, batches and every validation take them from memory
        data = data.in_memory()
    if options.num_workers or not can_hold(valid):
        check_finite(valid)
    else:
        valid = valid.in_memory()
    climatology = None
    if units is None:
        normalisers, envelope = fit(data, options.normalisation, look=surveyor.look_at), surveyor.envelope
        climatology = surveyor.climatology
    else:
        normalisers, envelope = units.normalisers(), units.envelope
    forecaster = Forecaster(
        model,
        normalisers=normalisers if source is None else reuse_units(source, normalisers),
        predict_increment=options.predict_increment,
        conserve_mean=options.conserve_mean,
        window=window,
        context_time=context_time,
        spacing=data.spacing if units is None else units.spacing,
        spacings=[view.spacing for view in on_grids(data, options.grids)] if options.grids else (),
        mask=data.mask,
        # Where every trajectory has units of its own, those of others say nothing about it.
        envelope=None if options.normalisation == "per_sample_minmax" else envelope,
    )
    return Task(forecaster, data, valid, options, description, files, climatology=climatology)


def can_hold(data: Trajectories) -> bool:
    """Whether data can be kept in memory, within the limit of a read and with its second copy while they are read."""
    size = len(data) * trajectory_bytes(data)
    return size <= data.limit and 2 * size <= free_memory()


def held_out(data: Trajectories) -> tuple[Trajectories, Trajectories]:
    """Training and validation trajectories."""
    if len(data) < 2:
        raise ValueError(f"`data` has {len(data)} trajectories, too few to hold one out. Give `valid`.")
    rows = holdout(len(data))
    return data.select(indices=rows["train"]), data.select(indices=rows["valid"])


def frames_seen(model: nn.Module) -> int:
    """How many frames a model looks at, by its description, or without one by its own word."""
    config = getattr(model, "config", None)
    return config.frames_seen() if isinstance(config, OperatorConfig) else getattr(model, "frames_as_channels", 0) or 1


def check_fit(model: nn.Module, data: Trajectories) -> None:
    """Refuse data that the model cannot take, before anything is computed or written."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(f"{type(model).__name__} has nothing to learn. Evaluate it as it is.")
    config = getattr(model, "config", None)
    if config is None:
        check_module(model, data)
        return
    found = {
        "n_dims": (len(data.axes), f"the grid of {data.name!r} has the axes {', '.join(a.name for a in data.axes)}"),
        "in_channels": (
            len(data.fields) + len(data.context_fields),
            f"{data.name!r} has the fields {', '.join((*data.fields, *data.context_fields))}",
        ),
        "out_channels": (len(data.fields), f"{data.name!r} predicts {', '.join(data.fields)}"),
    }
    for name, (expected, reason) in found.items():
        value = getattr(config, name, expected)
        if value != expected:
            raise ValueError(f"The model has {name} = {value}, but {reason}. Build it with `{name}={expected}`.")
    if isinstance(config, OperatorConfig):
        config.check_grid_type(data.geometry.name)
    check_grid = getattr(model, "check_grid", None)
    if callable(check_grid):
        check_grid(tuple(axis.points for axis in data.axes))


def check_module(model: nn.Module, data: Trajectories) -> None:
    """Refuse a module without a description that does not map frames to frames, by trying it on zeros."""
    taken = getattr(model, "frames_as_channels", 0)
    channels, grid = len(data.fields) + len(data.context_fields), tuple(axis.points for axis in data.axes)
    first = next(model.parameters())
    shape = (1, taken or len(data.times) - 1, channels, *grid)
    frames = torch.zeros(shape, dtype=first.dtype.to_real(), device=first.device)
    expected = (1, 1 if taken else shape[1], len(data.fields), *grid)
    training = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng():
            got = f"it returned the shape {found}" if (found := tuple(model.eval()(frames).shape)) != expected else ""
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    finally:
        for module, flag in training:
            module.training = flag
    if got:
        raise ValueError(
            f"`model` is a {type(model).__name__}: for frames (batch, time, channel, *grid) of shape {shape} it must "
            f"return {expected}, but {got}. Wrap a module on (batch, channel, *grid): `WrappedModule(module, "
            f"n_dims={len(grid)})`."
        )


def describe_data(data: Trajectories) -> dict[str, Any]:
    """What a run's config says about its data."""
    return {
        "name": data.name,
        "shape": list(data.shape),
        "fields": list(data.fields),
        "context_fields": list(data.context_fields),
        "axes": [axis.name for axis in data.axes],
        "units": asdict(data.units),
        "spacing": list(data.spacing),
        "times": [float(data.times[0]), float(data.times[-1])],
    }
