"""How large kernels should be at the start:  python docs/scripts/kernel_init_norm.py  (ten minutes on one core).

SS-NO of half the width with the recipe `fast`, 512 trajectories once in 1D and 96 twice in 2D (32 x 32), judged on
validation trajectories; None leaves weights as they are drawn. Needs data/ks-0.1-paper, burgers-paper, torus-li-small.
"""

import time
from dataclasses import replace
from pathlib import Path

import torch

from ssno import SSNOConfig, train
from ssno.base.json_io import write_json
from ssno.base.provenance import provenance
from ssno.data.load import DataOptions
from ssno.forecasting.scores import score
from ssno.runs.log import Silent
from ssno.training.processes import TrainingDiverged

ROOT = Path(__file__).parents[2]
DATA = {
    "ks": (DataOptions(name="ks", preset="paper", viscosity=0.1, resolution=64), 512, 32, 1),
    "burgers": (DataOptions(name="burgers", preset="paper", resolution=64), 512, 32, 1),
    "torus-li": (DataOptions(name="torus-li", preset="small", resolution=32), 96, 12, 2),
}
NORMS = {"ks": (None, 1.0, 2.0), "burgers": (None, 1.0, 2.0), "torus-li": (None, 0.5, 1.0, 2.0)}
SEEDS = {"ks": 3, "burgers": 3, "torus-li": 1}


def trial(name: str, norm: float | None, seed: int) -> dict[str, object]:
    """One training, and its errors on validation trajectories."""
    options, trained, judged, epochs = DATA[name]
    data = options.load("train")
    last = range(len(data) - judged, len(data))
    valid = options.load("valid").select(indices=range(judged)) if name == "ks" else data.select(indices=last)
    config = SSNOConfig(n_dims=len(data.spacing), hidden_channels=32, head_channels=128).recommended(periodic=True)
    torch.manual_seed(seed)
    model = replace(config, modes=replace(config.modes, kernel_init_norm=norm)).build()
    start = time.process_time()
    told = {"data": name, "kernel_init_norm": norm, "seed": seed}
    try:
        count = min(trained, len(data) - judged)
        forecaster = train(
            model,
            data.select(indices=range(count)).in_memory(),
            valid=valid.in_memory(),
            epochs=epochs,
            seed=seed,
            reporter=Silent(),
        )
    except TrainingDiverged as error:
        return {**told, "diverged": str(error)}
    means = score(forecaster, valid).means
    errors = {metric: means[metric] for metric in ("rel_l2", "rel_l2_onestep")}
    return {**told, **errors, "cpu_seconds": time.process_time() - start}


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for name, norms in NORMS.items():
        for seed in range(SEEDS[name]):
            for norm in norms:
                rows.append(trial(name, norm, seed))
                print(rows[-1], flush=True)
                write_json(ROOT / "results" / "starting-norm.json", {"rows": rows, "provenance": provenance()})


if __name__ == "__main__":
    main()
