"""`train`: from a model and trajectories to a forecaster."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ssno.base.distributed_env import sharing_fields
from ssno.data.trajectories import Trajectories
from ssno.data.windows import ContextTime, Window
from ssno.forecasting.forecaster import Forecaster
from ssno.layers.space import MeshShape
from ssno.models.config import OperatorConfig
from ssno.runs.log import Logger, Reporter
from ssno.runs.options import Recipe, TrainOptions
from ssno.runs.run import Run
from ssno.training.loop import run_task
from ssno.training.task import task_for


def train(
    model: nn.Module | OperatorConfig | Run[Any],
    data: Trajectories | None = None,
    *,
    valid: Trajectories | None = None,
    recipe: Recipe = "fast",
    options: TrainOptions | None = None,
    window: Window | None = None,
    context_time: ContextTime | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stop_after: int | None = None,
    stop_at: datetime | None = None,
    reporter: Reporter | None = None,
    device: str | torch.device = "auto",
    loggers: Collection[Logger] = (),
    mesh: str | None = None,
    fsdp: bool = False,
    gradient_checkpointing: bool = False,
    **changes: Any,
) -> Forecaster:
    """Train a model to forecast trajectories and return it with its units.

    Args:
        model: a description such as `SSNOConfig()`, which the recipe completes for these data, as `ssno train` does; or
            a built model, or any module that maps (batch, time, channel, *grid) step by step, taken as it is; or a
            `Run`, which also describes data and options.
        data: training trajectories; `Trajectories.from_array` makes them of your own array.
        valid: trajectories that pick the best weights; by default the last tenth of `data` is held out.
        recipe: "fast" (ours) or "paper"; `changes` override single options: `epochs=50, noise_std=0`.
        options: all options at once, instead of a recipe.
        window: protocol and number of input frames; by default the first K frames, K being the model's memory.
        context_time: whether the context fields of a time step are those of its "input" frame or of the "target" frame
            that it predicts; by default what is usual for the dataset.
        folder: where checkpoints, weights and log go; None writes nothing.
        resume: go on from the last checkpoint in `folder`. Options must be those of the run, except those that may
            change (`ssno.runs.run`).
        overwrite: delete what an earlier run left in `folder`.
        stop_after: stop after so many optimiser steps, as if interrupted.
        stop_at: stop at this time, as if interrupted.
        reporter: who hears of progress; by default a bar on a terminal, lines elsewhere.
        device: where to compute: "auto", "cpu", "cuda", "cuda:1" or "mps" (`ssno.base.device`). It is no option of the
            run, which may go on elsewhere.
        mesh: "data=2,space=2" splits every field over two processes of a set, of which there are two
            (`ssno.layers.space`); the processes are those of the launcher. No option of the run either.
        fsdp: every process of the launcher holds a shard of each weight, its gradient and optimiser state.
        gradient_checkpointing: keep the inputs of spatial blocks alone, and compute them again for the backward pass.
        loggers: also log to "tensorboard" or "wandb" (needs the extras `ssno[tensorboard]`, `ssno[wandb]`).
    """
    shape = None if mesh is None else MeshShape.parse(mesh)
    with sharing_fields(1 if shape is None else shape.pieces):
        task = task_for(
            model,
            data,
            valid=valid,
            recipe=recipe,
            options=options,
            window=window,
            context_time=context_time,
            resumed=Path(folder) if folder is not None and resume else None,
            **changes,
        )
    return run_task(
        task,
        folder=None if folder is None else Path(folder),
        resume=resume,
        overwrite=overwrite,
        stop_after=stop_after,
        stop_at=stop_at,
        reporter=reporter,
        device=device,
        loggers=loggers,
        mesh=shape,
        fsdp=fsdp,
        gradient_checkpointing=gradient_checkpointing,
    )
