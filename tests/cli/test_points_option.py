"""`predict --points` and `evaluate --points`: any coarser grid of the data, also uneven ones."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.cli.main import main
from ssno.data.grids import fitting
from ssno.data.load import DataOptions, load_dataset
from ssno.forecasting.rollout import rollout
from ssno.layers.memory import MemoryOptions
from ssno.models.ssno import SSNOConfig
from ssno.runs.load import load_forecaster
from ssno.runs.run import Run
from ssno.training.train import train

LENGTHS = (2.0, 1.0)
READ = ["--axes", "batch time channel x y", "--lengths", "2", "1", "--dt", "1"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Smooth fields on 32 x 16 points, and a model trained on 16 x 8 of them."""
    folder = tmp_path_factory.mktemp("points")
    x, y = np.meshgrid(np.arange(32) / 32, np.arange(16) / 16, indexing="ij")
    t, phase = np.arange(7)[:, None, None], np.linspace(0, 3, 6)[:, None, None, None]
    fields = np.sin(2 * np.pi * x + 0.2 * t + phase) * np.cos(2 * np.pi * y - phase)
    np.save(folder / "waves.npy", fields[:, :, None].astype(np.float32))
    data = DataOptions(
        name="waves",
        path=str(folder / "waves.npy"),
        axes="batch time channel x y",
        lengths=LENGTHS,
        dt=1.0,
        resolution=16,
    )
    run = Run(data=data, model=SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)))
    small = run.completed(data.load("train"), recipe="fast")
    train(small, folder=folder / "run")
    return folder


@pytest.mark.parametrize(("points", "grid"), [((12, 10), (12, 10)), ((20,), (20, 10)), ((32, 8), (32, 8))])
def test_predict_writes_the_forecast_on_that_grid(place, points, grid) -> None:
    given = [str(number) for number in points]
    where = ["--input", str(place / "waves.npy"), "--output", str(place / "next.h5"), "--overwrite"]
    main(["predict", str(place / "run"), *where, "--steps", "3", *READ, "--resolution", *given])
    found = load_dataset(place / "next.h5", "all").read(slice(None)).state
    assert found.shape[3:] == grid
    options = {"axes": "batch time channel x y", "lengths": LENGTHS, "dt": 1.0}
    data = load_dataset(place / "waves.npy", "all", resolution=points, reduction=None, **options)
    forecaster = load_forecaster(place / "run")
    expected = rollout(forecaster, data.read(slice(None)).state[:, -2:], 3, spacing=data.spacing)
    torch.testing.assert_close(found, expected)


def test_evaluate_scores_on_that_grid(place, capsys) -> None:
    main(["evaluate", str(place / "run"), "--resolution", "20", "12", "--json"])
    (document,) = json.loads(capsys.readouterr().out)
    assert document["points"] == [20, 12]
    assert (place / "run" / "evaluation-20x12.json").is_file()
    main(["evaluate", str(place / "run"), "--resolution", "20", "--dry-run"])
    assert "20 x 10" in capsys.readouterr().out


def test_a_grid_that_the_data_do_not_have_is_refused(place, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", str(place / "run"), "--resolution", "40"])
    assert "`resolution` along x must be between 1 and 32, got 40" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["evaluate", str(place / "run"), "--resolution", "16", "8", "4"])
    assert "`resolution` must have one number per axis (2), got (16, 8, 4)" in capsys.readouterr().err


def test_every_nth_point_is_taken_where_that_fits(place) -> None:
    axes = load_dataset(place / "waves.npy", "all", axes="batch time channel x y", dt=1.0).axes
    assert [fitting(axes, points) for points in (16, 20, (16, 8), (32, 12))] == [
        "stride",
        "spectral",
        "stride",
        "spectral",
    ]
