"""Measure and draw docs/manual/any-grid.md:  python docs/scripts/any_grid.py  (some minutes on one core).

The bundled KS checkpoint, trained on 64 points, forecasts on other grids without new training: with its kernels sampled
anew for each grid ("resample"), and with their discrete spectrum continued ("spectrum"). Numbers go to
results/any-grid.json, from there into the table between `<!-- any-grid -->` and `<!-- end -->` of the page
(`--page` does only that).
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import matplotlib.pyplot as plt
import torch
import tyro

from ssno import load_dataset, load_forecaster
from ssno.base import provenance, read_json, write_json
from ssno.data import build_plan, generate
from ssno.forecasting import Forecaster, score
from ssno.plots import save

ROOT = Path(__file__).parents[2]
PAGE, STORE = ROOT / "docs" / "manual" / "any-grid.md", ROOT / "results" / "any-grid.json"
BEGIN, END = "<!-- any-grid -->", "<!-- end -->"
CHECKPOINT, LEARNED = "ks-0.1-64", 64
GRIDS = {"stride": (32, 64, 128, 256), "spectral": (48, 80, 100)}
ORDER = (64, 128, 256, 80, 100, 48, 32)
TRAJECTORIES = 12
Transfer = Literal["spectrum", "resample"]
TRANSFERS: tuple[Transfer, ...] = ("spectrum", "resample")


def with_transfer(transfer: Transfer) -> Forecaster:
    """The checkpoint with its kernels carried over to other grids in one of two ways."""
    forecaster = load_forecaster(CHECKPOINT)
    model = forecaster.model
    model.config = replace(model.config, modes=replace(model.config.modes, resolution_transfer=transfer))
    for module in model.modules():
        if hasattr(module, "transfer"):
            module.transfer = transfer
    return forecaster


def measure() -> None:
    """Forecast on every grid in both ways, and store the errors."""
    forecasters = {transfer: with_transfer(transfer) for transfer in TRANSFERS}
    with tempfile.TemporaryDirectory() as folder:
        plan = build_plan("ks", "small", counts={"train": 1, "valid": 1, "test": TRAJECTORIES}, viscosity=0.1)
        generate(plan, Path(folder) / "ks", jobs=1)
        rows = [
            {"points": points, "reduction": reduction, "transfer": transfer, **score(forecaster, data).means}
            for reduction, grids in GRIDS.items()
            for points in grids
            for data in [load_dataset(Path(folder) / "ks", "test", resolution=points, reduction=reduction)]
            for transfer, forecaster in forecasters.items()
        ]
    found = {"checkpoint": CHECKPOINT, "trajectories": TRAJECTORIES, "rows": rows, "provenance": provenance()}
    write_json(STORE, found)


def stored() -> dict[str, Any]:
    """What was measured."""
    return read_json(STORE, remedy="python docs/scripts/any_grid.py")


def table() -> str:
    """Errors by grid and transfer; on coarser grids than every 16th point nothing can be resolved, so one line."""
    found = stored()
    about = (
        f"`{found['checkpoint']}` as of ssno {found['provenance']['ssno']}, {found['trajectories']} unseen trajectories"
    )
    lines = [f"{about}:\n", "| points | data | `resolution_transfer` | rollout | one step |", "|---|---|---|---|---|"]
    known = {(row["points"], row["transfer"]): row for row in found["rows"]}
    for points in ORDER:
        for transfer in TRANSFERS[: 1 if points == LEARNED or points < 48 else 2]:
            row = known[points, transfer]
            every = f"every {512 // points}th point" if points != 256 else "every 2nd point"
            data = every if row["reduction"] == "stride" else "band-limited"
            lines.append(
                f"| {points} | {data} | {'as in training' if points == LEARNED else f'`{transfer}`'} | "
                f"{row['rel_l2']:.3g} | {row['rel_l2_onestep']:.2g} |"
            )
    return "\n".join(lines)


def draw() -> None:
    """The errors against the number of points."""
    rows = stored()["rows"]
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for transfer, colour in (("spectrum", "#2166ac"), ("resample", "#d6602d")):
        for reduction, marker in (("stride", "o-"), ("spectral", "x")):
            chosen = [row for row in rows if (row["transfer"], row["reduction"]) == (transfer, reduction)]
            label = f"{transfer}, every n-th point" if marker == "o-" else f"{transfer}, band-limited data"
            axes.plot(
                [row["points"] for row in chosen], [row["rel_l2"] for row in chosen], marker, color=colour, label=label
            )
    axes.axvline(LEARNED, color="#8a929c", linewidth=0.8)
    axes.text(LEARNED * 1.03, 0.95, "trained here", color="#8a929c", transform=axes.get_xaxis_transform())
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="rel_l2 of rollouts")
    ticks = sorted(points for grids in GRIDS.values() for points in grids if points != 100)
    axes.set_xticks(ticks, [str(points) for points in ticks])
    axes.minorticks_off()
    axes.legend(frameon=False)
    save(figure, ROOT / "docs" / "images" / "any-grid.png")


def main(*, page: bool = False) -> None:
    """Measure, draw, and fill the table; with `--page` only the last."""
    if not page:
        torch.set_num_threads(1)
        measure()
        draw()
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    tyro.cli(main)
