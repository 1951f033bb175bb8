"""Small data, and runs on disk with weights that were never trained: an evaluation does not care."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import DataOptions
from ssno.data.normalise import fit
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.layers.memory import MemoryOptions
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.config import OperatorConfig
from ssno.runs.options import TrainOptions
from ssno.runs.run import Run

SHORT = {"frames": 7, "end_time": 0.6, "points": 64, "solver_points": 64, "step": 0.1}


@pytest.fixture(scope="session")
def short_ks(tmp_path_factory) -> Path:
    """A KS dataset of a few short trajectories."""
    folder = tmp_path_factory.mktemp("short") / "ks"
    generate(build_plan("ks", "tiny", counts={"train": 2, "valid": 1, "test": 3}, **SHORT), folder)
    return folder


@pytest.fixture
def make_run(short_ks, tmp_path) -> Callable[..., Path]:
    """Writes the folder of a run, as training would leave it behind."""

    def write(
        name: str = "run",
        *,
        seed: int = 0,
        config: OperatorConfig | None = None,
        described: bool = True,
        window: int = 2,
    ) -> Path:
        options = DataOptions(name=str(short_ks), resolution=32)
        data = options.load("train")
        torch.manual_seed(seed)
        config = config or FFNOConfig.tiny(memory=MemoryOptions(0, d_state=8), n_modes=4, n_layers=1)
        forecaster = Forecaster(
            config.build(),
            normalisers=fit(data, "zscore"),
            predict_increment=True,
            window=Window(size=window),
            spacing=data.spacing,
        )
        run = Run(data=options, model=config, train=TrainOptions(seed=seed), window=Window(size=window))
        section = run.to_json() if described else {"train": {"seed": seed}, "data": {"name": "ks"}}
        folder = tmp_path / name
        forecaster.save(folder, run=section, provenance={"commit": "made up"})
        return folder

    return write
