"""Growing towards a run's size, and the forecast against real processes."""

import json
import shutil
import sys
from importlib import import_module

import numpy as np
import pytest
from benchmarks.memory import MODES, OTHERS, SWEEP, Case, child, compare, picture

from ssno.base.memory import peak_memory
from ssno.cli.main import main
from ssno.data.windows import Window
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.options import Stage, Unrolling
from ssno.training.estimate import (
    HELD,
    HELD_RECOMPUTED,
    Growth,
    extrapolated,
    extrapolated_twice,
    forecast_memory,
    growing,
    one_step,
)
from ssno.training.task import task_for


def test_growth_ends_at_the_size_itself() -> None:
    assert [growing(size) for size in (1, 3, 4, 9)] == [[1], [1, 2, 3], [1, 2, 4], [1, 2, 4, 8, 9]]


def test_a_line_beyond_the_budget_and_a_measurement_within() -> None:
    seen = []

    def measure(size: int) -> int:
        seen.append(size)
        return 50 + 10 * size

    assert extrapolated(measure, [1, 4, 16, 64], budget=10**6) == (64, 690, 10)
    assert seen == [1, 64]
    seen.clear()
    assert extrapolated(measure, [1, 4, 16, 64], budget=250) == (16, 690, 10)
    assert seen == [1, 4, 16]
    assert extrapolated(measure, [1, 2], budget=0) == (1, 120, 60)  # nothing more may be tried: in proportion


@pytest.mark.parametrize("budget", [10**6, 5000, 3000])
def test_costs_of_a_step_that_do_not_grow_with_the_batch_are_told_apart(budget) -> None:
    seen = []

    def measure(trajectories: int, frames: int) -> int:
        seen.append(100 + frames * (300 + 10 * trajectories))
        return seen[-1]

    whole = 100 + 24 * (300 + 10 * 32)
    assert extrapolated_twice(measure, growing(32), growing(24), budget=budget) == whole
    assert max(seen) <= 2 * budget


def test_a_batch_beyond_the_budget_is_overestimated_rather_than_under() -> None:
    forecast = extrapolated_twice(lambda b, n: 10 + n * b, growing(64), growing(8), budget=120)
    assert forecast == 10 + 64 * 8
    whole = 8 * (5 + 64)
    assert whole <= extrapolated_twice(lambda b, n: n * (5 + b), growing(64), growing(8), budget=120) < 1.5 * whole


def test_cut_recomputed_and_short_unrolls_hold_less(waves) -> None:
    forecaster = task_for(SSNO(SSNOConfig.tiny()), waves).forecaster

    def held(**stage) -> int:
        return peak_memory(lambda: one_step(forecaster, waves, Stage(teacher_forcing=0.0, **stage), 16))

    full = held()
    assert all(parameter.grad is None for parameter in forecaster.parameters())
    assert held(frames=4) == pytest.approx(full, rel=0.02)
    for shorter in (
        {"frames": 1},
        {"truncate": 1},
        {"gradient_checkpointing": True},
    ):  # kernels, made once, are held in all
        assert held(**shorter) < 0.8 * full


def test_the_costliest_stage_counts(waves, monkeypatch) -> None:
    module = import_module("ssno.training.estimate")
    monkeypatch.setattr(module, "extrapolated", lambda *_, budget: Growth(1, 0.0, 0.0))
    monkeypatch.setattr(
        import_module("ssno.training.estimate"), "extrapolated_twice", lambda _, b, n, budget: n[-1] * 2**40
    )
    task = task_for(SSNO(SSNOConfig.tiny()), waves, valid=waves, unroll=Unrolling(frames=(1, 3, 2)))
    forecast = forecast_memory(task)
    assert forecast == pytest.approx(HELD * 3 * 2**40, rel=0.01)
    again = Unrolling(frames=(1, 3, 2), teacher_forcing=(0.0,), gradient_checkpointing=True)
    forecast = forecast_memory(task_for(SSNO(SSNOConfig.tiny()), waves, valid=waves, unroll=again))
    assert forecast == pytest.approx(HELD_RECOMPUTED * 3 * 2**40, rel=0.01)


def test_a_run_that_does_not_fit_is_not_tried(tmp_path, monkeypatch, capsys) -> None:
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).standard_normal((12, 8, 16)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_module("ssno.training.estimate"), "free_memory", lambda: -(2**40))
    words = ["train", "noise.npy", "--model", "ssno:tiny", "--data.axes", "batch time x", "--dry-run"]
    main([*words, "--json"])
    cost = json.loads(capsys.readouterr().out)
    assert cost["memory_bytes"] > 10**7
    assert cost["seconds"] is None
    assert cost["disk_bytes"] is None
    main(words)
    assert "The run does not fit, so no step was tried. Lower --train.batch-size" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


def test_a_forecast_is_within_a_fifth_of_a_real_process() -> None:
    assert 0.8 < compare(Case("teacher forcing", 8))["ratio"] < 1.2


def test_the_picture_shows_every_mode() -> None:
    rows = [
        {"mode": mode, "frames": frames, "measured_bytes": 2**20 * frames, "forecast_bytes": 2**20 * frames}
        for mode in MODES
        for frames in (4, 8)
    ]
    labels = [text.get_text() for text in picture(rows).axes[0].get_legend().get_texts()]
    assert labels == [*MODES, "forecast before the run"]


def test_a_child_that_fails_says_which(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(RuntimeError, match="`measure` failed for .*mode='pushforward', frames=4"):
        child("measure", Case("pushforward", 4))


@pytest.mark.verify
@pytest.mark.parametrize("case", [*SWEEP[::3], *OTHERS], ids=str)
def test_forecasts_are_within_a_fifth_in_every_mode(case) -> None:
    assert 0.8 < compare(case)["ratio"] < 1.2


@pytest.mark.verify
@pytest.mark.parametrize("mode", MODES)
def test_forecasts_from_small_parts_are_within_a_fifth(mode) -> None:
    case = Case(mode, 16)
    model, data, valid, options = case.setting()
    task = task_for(model, data, valid=valid, options=options, window=Window(size=4))
    small, whole = (forecast_memory(task, budget=size * 2**20) for size in (60, 4096))
    assert small == pytest.approx(whole, rel=0.2)


def test_a_step_in_bf16_is_forecast_in_bf16(waves, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(
        import_module("ssno.training.estimate"), "one_step", lambda forecaster, *_: seen.append(forecaster.precision)
    )
    task = task_for(SSNO(SSNOConfig.tiny()), waves, precision="bf16")
    forecast_memory(task)
    assert set(seen) == {"bf16"}
    assert task.forecaster.precision == "float32", "validation has the precision of the weights"
