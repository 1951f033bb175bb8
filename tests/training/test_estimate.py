"""What a dry run says of time and disk. Memory: test_memory_forecast.py; the truth: benchmarks/dry_run.py."""

import itertools
from dataclasses import replace
from importlib import import_module

import pytest
from benchmarks.dry_run import CASES, compare
from tests.training.small_runs import tiny

from ssno.models.ssno import SSNOConfig
from ssno.runs.log import Silent
from ssno.runs.options import Stage, TrainOptions, Unrolling
from ssno.training.estimate import Spent, disk, estimate, shares
from ssno.training.task import task_for
from ssno.training.train import train

STAGE = Stage()


def test_steps_are_extrapolated_along_the_two_largest_tried() -> None:
    spent = Spent()
    spent.steps[STAGE] = {4: 9.0, 8: 2.0, 16: 3.0}  # the first warmed up
    assert spent.step(STAGE, 80) == pytest.approx(3.0 + 64 / 8)
    spent.steps[STAGE] = {4: 9.0, 8: 2.0}
    assert spent.step(STAGE, 80) == pytest.approx(20.0)
    spent.steps[STAGE] = {4: 1.0}
    assert spent.step(STAGE, 80) == pytest.approx(20.0)
    spent.steps[STAGE] = {4: 1.0, 8: 3.0, 16: 2.0}
    assert spent.step(STAGE, 80) == pytest.approx(2.0), "more work is never quicker"


def test_stages_have_their_shares_of_the_epochs() -> None:
    stages = shares(TrainOptions(epochs=10**7, unroll=Unrolling(teacher_forcing=(1.0, 0.5, 0.0), frames=(4,))))
    assert stages == {
        Stage(frames=4): pytest.approx(1 / 3, rel=0.01),
        Stage(teacher_forcing=0.0, frames=4): pytest.approx(2 / 3, rel=0.01),
    }


@pytest.mark.parametrize("tick", [1.0, 1e-4])
def test_long_steps_are_told_from_parts_and_short_ones_are_done(waves, valid_waves, monkeypatch, tick) -> None:
    """By a clock that advances by the same at every look; every evaluation also saves."""
    done = []
    module = import_module("ssno.training.estimate")
    run_task = module.run_task
    monkeypatch.setattr(module, "run_task", lambda *words, **names: (done.append(1), run_task(*words, **names)))
    ticks = itertools.count()
    task = task_for(tiny(), waves, valid=valid_waves, epochs=10, batch_size=4)
    cost = estimate(task, clock=lambda: tick * next(ticks))
    assert bool(done) == (tick < 1)
    assert cost.seconds is not None
    assert cost.seconds_per_step is not None
    assert cost.steps == 50
    assert cost.seconds > 50 * cost.seconds_per_step


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_disk_is_that_of_the_run(tmp_path, waves, valid_waves, ema) -> None:
    options = {"valid": valid_waves, "epochs": 2, "keep_every": 1, "ema": ema}
    wide = SSNOConfig.tiny(hidden_channels=64, head_channels=256)  # beside it, the headers of files weigh little
    train(wide, waves, folder=tmp_path, reporter=Silent(), **options)
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.safetensors"))
    assert disk(task_for(wide, waves, **options)) == pytest.approx(written, rel=0.1)


def test_the_benchmark_compares_a_forecast_with_a_training(monkeypatch) -> None:
    """In this process: `test_memory_forecast.py` starts such children."""
    dry_run = import_module("benchmarks.dry_run")
    monkeypatch.setattr(dry_run, "child", lambda what, *given: getattr(dry_run, what)(*given))
    row = compare(replace(CASES[1], trajectories=4, frames=8, options={"epochs": 1}), "processor")
    assert row["forecast_seconds"] > 0
    assert row["ratio"] == row["forecast_seconds"] / row["measured_seconds"]
