"""`ssno models`: every model, its size, what it is and where it comes from."""

import inspect
import json as json_format
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from ssno.models.config import OperatorConfig
from ssno.models.count import count_parameters
from ssno.models.history import FramesConfig, MemoryConfig
from ssno.models.registry import MODELS


def models(*, json: bool = False) -> None:
    """List all models with their parameters in 1D and 2D for one field, in the paper's size.

    Args:
        json: print the table as JSON.
    """
    rows = [describe(config) for config in MODELS.values()]
    if json:
        print(json_format.dumps(rows, indent=2))
        return
    table = Table(title="Models; choose one with: ssno train DATASET --model NAME", title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("1D", justify="right")
    table.add_column("2D", justify="right")
    table.add_column("past")
    table.add_column("what it is, where it comes from")
    for row in rows:
        sizes = (f"{row[f'parameters_{n_dims}d']:,}" for n_dims in (1, 2))
        table.add_row(row["name"], *sizes, row["past"], f"{row['summary']}\n[dim]{row['origin']}[/dim]")
    console = Console()
    console.print(table)
    console.print(
        "1D, 2D: parameters for one field in the paper's size. Past: [bold]memory K[/bold] a temporal block over the "
        "last K frames, [bold]stack K[/bold] the last K frames as channels. NAME:tiny is a model's smallest size."
    )


def describe(config: type[OperatorConfig]) -> dict[str, Any]:
    """One row: name, parameters, what the model sees by default, its summary and origin."""
    return {
        "name": config.name,
        **{f"parameters_{n_dims}d": count(config(n_dims=n_dims)) for n_dims in (1, 2)},
        "past": past(config()),
        "summary": (inspect.getdoc(config) or "").splitlines()[0],
        "origin": config.origin,
    }


def count(config: OperatorConfig) -> int:
    """Number of parameters, without making room for them."""
    with torch.device("meta"):
        return count_parameters(config.build())


def past(config: OperatorConfig) -> str:
    """How a model sees earlier frames, in a word."""
    if isinstance(config, MemoryConfig) and config.memory_window:
        return f"memory {config.memory_window}"
    if isinstance(config, FramesConfig) and config.frames_as_channels:
        return f"stack {config.frames_as_channels}"
    return "none" if config.name != "linear" else "stack 2"
