"""Measure what aliasing in the gates costs, and what computing them on twice as many points gains.

    python docs/scripts/aliasing.py     (some minutes on one core; needs data/ks-0.1-paper)

A gate is a nonlinear function of every point, so it makes waves that the grid cannot hold and folds them back. Here its
input is brought to twice as many points by its waves, and its output cut to those of the grid. First in the bundled
checkpoint, which was trained without that, then in trainings of both kinds with the same steps and seeds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor

from ssno import SSNOConfig, load_dataset, load_forecaster, train
from ssno.base.json_io import write_json
from ssno.base.provenance import provenance
from ssno.data.load import DataOptions
from ssno.forecasting.scores import score
from ssno.layers import axial as sweeps
from ssno.layers.block import DiscretisedKernels
from ssno.layers.gate import gate
from ssno.runs.log import Silent
from ssno.transforms.periodic import resample

ROOT = Path(__file__).parents[2]
SEEDS, TRAJECTORIES, TESTED = 3, 512, 32
plain_scan = sweeps.gated_scan


def oversampled_scan(x: Tensor, weights: DiscretisedKernels, *, residual_weight: int = 0) -> Tensor:
    """A scan whose gate works on twice as many points of its axis (h, o, l, i)."""
    scanned = weights.scan(x)
    points = x.shape[2]
    fine = resample(scanned.movedim(3, -1), (2 * points,)).movedim(-1, 3).contiguous()
    gated = gate(fine.flatten(2), weights.mix, weights.bias).view(*x.shape[:2], 2 * points, x.shape[3])
    return residual_weight * x + resample(gated.movedim(2, -1), (points,)).movedim(-1, 2)


@contextmanager
def gates(oversampled: bool) -> Iterator[None]:
    """Inside this context gates work on twice as many points, or as ever."""
    with patch.object(sweeps, "gated_scan", oversampled_scan if oversampled else plain_scan):
        yield


def folded_back() -> list[float]:
    """How much of what each scan adds is folded back, in the checkpoint on true frames."""
    found: list[float] = []

    def compare(x: Tensor, weights: DiscretisedKernels, *, residual_weight: int = 0) -> Tensor:
        plain = plain_scan(x, weights, residual_weight=residual_weight)
        fine = oversampled_scan(x, weights, residual_weight=residual_weight)
        found.append(float((plain - fine).norm() / (plain - residual_weight * x).norm()))
        return plain

    forecaster = load_forecaster("ks-0.1-64")
    frames = load_dataset("ks", "test", preset="paper", viscosity=0.1, resolution=64).read(range(4)).state[:, :4]
    with torch.no_grad(), patch.object(sweeps, "gated_scan", compare):
        forecaster.model.eval()(forecaster.units(frames).encode(frames))
    return found


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    test = {
        points: load_dataset("ks", "test", preset="paper", viscosity=0.1, resolution=points)
        .select(indices=range(TESTED))
        .in_memory()
        for points in (64, 128)
    }
    rows = []
    for oversampled in (False, True):
        with gates(oversampled):
            for points, data in test.items():
                means = score(load_forecaster("ks-0.1-64"), data).means
                row = {"what": "checkpoint", "oversampled": oversampled, "points": points}
                rows.append({**row, **{name: means[name] for name in ("rel_l2", "rel_l2_onestep")}})
    options = DataOptions(name="ks", preset="paper", viscosity=0.1, resolution=64)
    splits = {
        "train": options.load("train").select(indices=range(TRAJECTORIES)).in_memory(),
        "valid": options.load("valid").select(indices=range(16)).in_memory(),
    }
    config = SSNOConfig(hidden_channels=32, head_channels=128)
    for seed in range(SEEDS):
        for oversampled in (False, True):
            with gates(oversampled):
                start = time.process_time()
                forecaster = train(
                    config, splits["train"], valid=splits["valid"], epochs=1, seed=seed, reporter=Silent()
                )
                seconds = time.process_time() - start
                means = score(forecaster, test[64]).means
            row = {"what": "training", "oversampled": oversampled, "points": 64, "seed": seed, "cpu_seconds": seconds}
            rows.append({**row, **{name: means[name] for name in ("rel_l2", "rel_l2_onestep")}})
            print(rows[-1], flush=True)
    content = {
        "folded back per scan": folded_back(),
        "trajectories": TRAJECTORIES,
        "tested": TESTED,
        "rows": rows,
        "provenance": provenance(),
    }
    write_json(ROOT / "results" / "aliasing.json", content)


if __name__ == "__main__":
    main()
