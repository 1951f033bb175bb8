"""Measure and draw docs/manual/any-grid.md:  python docs/scripts/any_grid.py  (some minutes on one core).

The bundled KS checkpoint, trained on 64 points, forecasts on other grids without new training: with its kernels sampled
anew for each grid, and with their spectrum kept in its band.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn

from ssno import load_dataset, load_forecaster
from ssno.base.json_io import write_json
from ssno.base.provenance import provenance
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.forecasting.scores import score
from ssno.plots.style import save

ROOT = Path(__file__).parents[2]
CHECKPOINT, LEARNED = "ks-0.1-64", 64
GRIDS = {"stride": (32, 64, 128, 256), "spectral": (48, 80, 100)}
TRAJECTORIES = 12


def with_transfer(transfer: str) -> nn.Module:
    """The checkpoint with its kernels carried over to other grids in one of two ways."""
    forecaster = load_forecaster(CHECKPOINT)
    model = forecaster.model
    model.config = replace(model.config, modes=replace(model.config.modes, transfer=transfer))
    for module in model.modules():
        if hasattr(module, "transfer"):
            module.transfer = transfer
    return forecaster


def main() -> None:
    torch.set_num_threads(1)
    forecasters = {transfer: with_transfer(transfer) for transfer in ("band", "sampled")}
    with tempfile.TemporaryDirectory() as folder:
        plan = build_plan("ks", "small", counts={"train": 1, "valid": 1, "test": TRAJECTORIES}, viscosity=0.1)
        generate(plan, Path(folder) / "ks")
        rows = [
            {"points": points, "reduction": reduction, "transfer": transfer, **score(forecaster, data).means}
            for reduction, grids in GRIDS.items()
            for points in grids
            for data in [load_dataset(Path(folder) / "ks", "test", resolution=points, reduction=reduction)]
            for transfer, forecaster in forecasters.items()
        ]
    write_json(
        ROOT / "results" / "any-grid.json",
        {"checkpoint": CHECKPOINT, "trajectories": TRAJECTORIES, "rows": rows, "provenance": provenance()},
    )
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for transfer, colour in (("band", "#2166ac"), ("sampled", "#d6602d")):
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


if __name__ == "__main__":
    main()
