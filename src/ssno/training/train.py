"""`train`: from a model and trajectories to a forecaster."""

from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ssno.base.provenance import provenance
from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Alignment, Window
from ssno.forecasting.forecaster import Forecaster
from ssno.models.config import OperatorConfig
from ssno.runs.claim import claimed
from ssno.runs.options import Recipe, TrainOptions
from ssno.runs.options import recipe as named_recipe
from ssno.runs.unrolling import check_frames
from ssno.training.loop import Loop
from ssno.training.processes import place as join
from ssno.training.reporter import Reporter, Silent, reporter_for

HELD_OUT = 10  # without validation data, the last tenth of the trajectories is held out


def train(
    model: nn.Module,
    data: Trajectories,
    *,
    valid: Trajectories | None = None,
    recipe: Recipe = "fast",
    options: TrainOptions | None = None,
    folder: str | Path | None = None,
    window: Window | None = None,
    alignment: Alignment = "same",
    resume: bool = False,
    overwrite: bool = False,
    stop_after: int | None = None,
    reporter: Reporter | None = None,
    device: str | torch.device = "auto",
    tensorboard: bool = False,
    sections: dict[str, Any] | None = None,
    **changes: Any,
) -> Forecaster:
    """Train a model to forecast trajectories and return it with its units.

    Args:
        model: an `SSNO`, a baseline, or any module that maps (batch, time, channel, *grid) slot by slot.
        data: training trajectories; `Trajectories.from_array` makes them of your own array.
        valid: trajectories that pick the best weights; by default the last tenth of `data` is held out.
        recipe: "fast" (ours) or "paper"; `changes` override single options: `epochs=50, noise=0`.
        options: all options at once, instead of a recipe.
        folder: where checkpoints, weights and log go; None writes nothing.
        window: protocol and number of given frames; by default the first K frames, K being the model's memory.
        resume: go on from the last checkpoint in `folder`.
        overwrite: delete what an earlier run left in `folder`.
        stop_after: stop after so many optimiser steps, as if interrupted.
        reporter: who hears of progress; by default a bar on a terminal, lines elsewhere.
        device: where to compute: "auto", "cpu", "cuda", "cuda:1" or "mps" (`ssno.base.device`). It is no option of the
            run, which may go on elsewhere.
        tensorboard: also write TensorBoard's files (needs the extra `ssno[tensorboard]`).
        sections: what config.json says about the run; by default options and shapes.
    """
    options = (
        replace(options, **changes)
        if options
        else named_recipe(recipe, n_dims=len(data.axes), dataset=data.name, **changes)
    )
    if valid is None:
        data, valid = hold_out(data)
    check_fit(model, data)
    check_fit(model, valid)
    window = window or Window(size=seen_frames(model))
    window.plan(len(data.times))
    window.plan(len(valid.times))
    check_frames(options.rollout.stages(options.epochs), window, len(data.times))
    path = Path(folder) if folder is not None else None
    with join(device) as place, claimed(path, resume=resume, overwrite=overwrite) if place.leads else nullcontext():
        forecaster = forecaster_for(model, data, options, window=window, alignment=alignment)
        described = {"train": asdict(options), "data": describe_data(data), "valid": describe_data(valid)}
        loop = Loop(
            forecaster,
            data,
            valid,
            options,
            place=place,
            reporter=(reporter or reporter_for()) if place.leads else Silent(),
            folder=path,
            stop_after=stop_after,
            tensorboard=tensorboard,
            sections={"run": sections or described, "provenance": provenance()},
        )
        return loop.run(resume=resume)


def forecaster_for(
    model: nn.Module, data: Trajectories, options: TrainOptions, *, window: Window, alignment: Alignment = "same"
) -> Forecaster:
    """The model with units fitted on training data, ready to be trained."""
    return Forecaster(
        model,
        normalisers=fit(data, options.normalisation),
        increment=options.increment,
        window=window,
        alignment=alignment,
        spacing=data.spacing,
    )


def hold_out(data: Trajectories) -> tuple[Trajectories, Trajectories]:
    """Training and validation trajectories: the last tenth, at least one, validates."""
    if len(data) < 2:
        raise ValueError(f"`data` has {len(data)} trajectories, too few to hold one out. Give `valid`.")
    held = max(1, len(data) // HELD_OUT)
    return data.select(indices=range(len(data) - held)), data.select(indices=range(len(data) - held, len(data)))


def seen_frames(model: nn.Module) -> int:
    """How many frames a model looks at: its memory, or the frames it takes as channels."""
    taken = getattr(model, "frames_as_channels", 0)
    return taken or int(getattr(getattr(model, "config", None), "memory_window", 1))


def check_fit(model: nn.Module, data: Trajectories) -> None:
    """Refuse data that the model cannot take, before anything is computed or written."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(f"{type(model).__name__} has nothing to learn. Evaluate it as it is.")
    config = getattr(model, "config", None)
    if config is None:
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
        config.check_grid_type(data.grid_type)
    check_grid = getattr(model, "check_grid", None)
    if callable(check_grid):
        check_grid(tuple(axis.points for axis in data.axes))


def describe_data(data: Trajectories) -> dict[str, Any]:
    """What a run's config says about its data."""
    return {
        "name": data.name,
        "shape": list(data.shape),
        "fields": list(data.fields),
        "context_fields": list(data.context_fields),
        "spacing": list(data.spacing),
        "times": [float(data.times[0]), float(data.times[-1])],
    }
