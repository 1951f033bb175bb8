"""`ssno models`: every model, its size, what it is and where it comes from; and the checkpoints that are bundled."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ssno.base import byte_size, to_text
from ssno.base.formatting import number
from ssno.base.terminal import Console
from ssno.models.config import OperatorConfig
from ssno.models.operator import parameters_of
from ssno.models.pretrained import FILES, bundled_folders, read_model_document, reported_metrics
from ssno.models.registry import known_models, model_config


def models(*, json: bool = False) -> None:
    """List all models with their parameters in 1D and 2D for one field, in the paper's size; and trained checkpoints.

    Args:
        json: print the tables as JSON.
    """
    rows = [describe(name) for name in known_models()]
    checkpoints = [describe_checkpoint(folder) for folder in bundled_folders().values()]
    if json:
        print(to_text({"models": rows, "checkpoints": checkpoints}, indent=2))
        return
    table = Table(title="Models; choose one with: ssno train DATASET --model NAME", title_justify="left")
    table.add_column("name", no_wrap=True)
    table.add_column("1D", justify="right")
    table.add_column("2D", justify="right")
    table.add_column("past")
    table.add_column("what it is, where it comes from")
    for row in rows:
        counts = (row[f"parameters_{n_dims}d"] for n_dims in (1, 2))
        sizes = ("-" if parameters is None else f"{parameters:,}" for parameters in counts)
        table.add_row(row["name"], *sizes, row["past"], Text.assemble(f"{row['summary']}\n", (row["origin"], "dim")))
    console = Console()
    console.print(table)
    console.print(
        Text.assemble(
            "1D, 2D: parameters for one field in the paper's size. Past: ",
            ("memory K", "bold"),
            " a temporal block over the last K frames, ",
            ("stack K", "bold"),
            " the last K frames as channels. NAME:tiny is a model's smallest size.",
        )
    )
    if checkpoints:
        console.print(checkpoint_table(checkpoints))


def describe(name: str) -> dict[str, Any]:
    """One row: name, parameters, what the model sees by default, its grids, its summary and origin."""
    config = model_config(name)
    variant = config.variants.get(name)
    return {
        "name": name,
        **{f"parameters_{n_dims}d": size_in(name, n_dims) for n_dims in (1, 2)},
        "past": past(config),
        "grids": list(config.geometries),
        "summary": config.summary(name),
        "origin": (variant.origin if variant else "") or config.origin,
    }


def size_in(name: str, n_dims: int) -> int | None:
    """Parameters on grids with `n_dims` axes; None if the model does not exist there."""
    try:
        return parameters_of(model_config(name, n_dims=n_dims))
    except ValueError:
        return None


def describe_checkpoint(folder: Path) -> dict[str, Any]:
    """One row about a bundled checkpoint: its model, parameters, bytes and stated error."""
    document = read_model_document(folder)
    stated = reported_metrics(document)
    values = document["config"]
    return {
        "name": folder.name,
        "model": values["model"],
        "parameters": parameters_of(model_config(values["model"]).from_json(values)),
        "bytes": sum((folder / file).stat().st_size for file in FILES),
        "reported": None if stated is None else asdict(stated),
    }


def checkpoint_table(rows: list[dict[str, Any]]) -> Table:
    """Bundled checkpoints with the error each states."""
    look: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD, "collapse_padding": True, "pad_edge": False}
    table = Table("name, and data below it", title="Trained checkpoints; evaluate one with: ssno evaluate NAME", **look)
    table.add_column("model", no_wrap=True)
    for heading in ("parameters", "rel_l2", "one step", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        stated = row["reported"] or {}
        data = f"{stated['dataset']}, {stated['points']} points" if stated else "-"
        errors = (number(stated.get(metric)) for metric in ("rel_l2", "rel_l2_onestep"))
        size = byte_size(row["bytes"])
        table.add_row(f"{row['name']}\n{data}", row["model"], f"{row['parameters']:,}", *errors, size)
    return table


def past(config: OperatorConfig) -> str:
    """How a model sees earlier frames, in a word."""
    if frames := getattr(config, "frames_as_channels", 2 if config.name == "linear" else 0):
        return f"stack {frames}"
    remembered = config.frames_seen() if hasattr(config, "memory") else 0
    return f"memory {remembered}" if remembered else "none"
