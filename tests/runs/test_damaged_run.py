"""A config.json that says something else than it should: told by file and field."""

import json
from pathlib import Path

import pytest
from tests.waves import travelling_waves

from ssno.data.normalise import fit
from ssno.forecasting.forecaster import Forecaster
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.open import open_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run, never trained."""
    data = travelling_waves(3, seed=0)
    forecaster = Forecaster(SSNO(SSNOConfig.tiny()), normalisers=fit(data), spacing=data.spacing)
    forecaster.save(tmp_path, data={"train": {"shape": list(data.shape), "times": [0.0, 1.4]}})
    return tmp_path


def damaged(run: Path, name: str, value: object) -> None:
    *path, last = name.split(".")
    document = json.loads((run / "config.json").read_text())
    section = document
    for part in path:
        section = section[part]
    section[last] = value
    (run / "config.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("forecaster.state", None, "`forecaster.state` must be dict, got None"),
        ("forecaster.context", [1], r"`forecaster.context` must be dict, got \[1\]"),
        ("forecaster.state", {"method": "none"}, "A normaliser has the entries .* got method"),
        ("forecaster.spacing", 1, "`forecaster.spacing` must be .*, got 1"),
        ("forecaster.spacing", ["a"], r"`forecaster.spacing\[0\]` must be float, got 'a'"),
        ("forecaster.spacing", [0.0], "`forecaster.spacing` must hold positive lengths, got 0.0"),
        ("forecaster.spacings", [[1e-320]], "`forecaster.spacing` must hold positive lengths, got 1e-320"),
        ("forecaster.spacings", None, "`forecaster.spacings` must be .*, got None"),
        ("forecaster.spacings", [1], r"`forecaster.spacings\[0\]` must be .*, got 1"),
        ("forecaster.window", None, "`forecaster.window.` must be an object"),
        ("forecaster.context_time", 3, "`forecaster.context_time` must be one of"),
        ("forecaster", {"increment": True}, "`forecaster.state` is missing"),
    ],
)
def test_units_of_another_type_are_named(as_users_call_it, run, name, value, message) -> None:
    damaged(run, name, value)
    with pytest.raises(ValueError, match=rf"config.json is damaged: {message}"):
        open_run(run)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shape", [3, 8, 1, "x"], r"`data.train.shape\[3\]` must be int, got 'x'"),
        ("shape", 16, "`data.train.shape` must be .*, got 16"),
        ("shape", [3], r"`data.train.shape` must be \(trajectories, frames, fields, \*grid\), got \(3,\)"),
        ("times", [0.0], r"`data.train.times` must be .*, got \[0.0\]"),
        ("times", ["a", "b"], r"`data.train.times\[0\]` must be float, got 'a'"),
    ],
)
def test_training_data_of_another_shape_are_named(run, name, value, message) -> None:
    assert (open_run(run).grid, open_run(run).time_step) == ((16,), pytest.approx(0.2))
    damaged(run, f"data.train.{name}", value)
    opened = open_run(run)
    for asked in ("grid", "time_step"):
        with pytest.raises(ValueError, match=rf"config.json is damaged: {message}"):
            getattr(opened, asked)
