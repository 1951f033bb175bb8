"""Contests: every row is whole, batches are split where memory is short, choices are checked."""

import pytest
import torch

from ssno.evaluation.cost import (
    BenchmarkCase,
    BenchmarkEntry,
    Timing,
    benchmark_models,
    estimated_seconds,
    largest_part,
    memory_of,
    run_benchmark,
)
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.operator import count_parameters
from ssno.models.registry import MODELS
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native.engine import fused

PLENTY = 2**40


@pytest.mark.parametrize("task", ["forward", "train", "rollout"])
def test_a_case_gives_every_model_a_whole_row(task) -> None:
    configs = {"small": FFNOConfig.tiny(), "stacked": GKTConfig.tiny()}
    case = BenchmarkCase(task, (16,), 2, rollout_frames=3)
    rows = run_benchmark(case, configs, budget=0, least_rounds=3, memory_limit=PLENTY)
    assert {row.engine for row in rows} == {"fused" if fused(torch.zeros(1)) else "torch"}
    assert {row.to_json()["counted_engine"] for row in rows} == {"plain"}
    assert all(row.to_json()["timed_gflop"] > 0 and not row.timed_flops.unknown for row in rows)
    assert [row.model for row in rows] == list(configs)
    for row, config in zip(rows, configs.values(), strict=True):
        assert row.parameters == row.learnable == count_parameters(config.build())
        assert not row.flops.unknown
        shown = row.to_json()
        assert shown["gflop"] == pytest.approx(
            sum(v for k, v in shown.items() if k.startswith("gflop_") and v) - (shown["gflop_published"] or 0)
        )
        assert shown["memory_mib"] > 0
        assert shown["ms_lower"] <= shown["ms"] <= shown["ms_upper"]
        assert (shown["rounds"], shown["batch"], shown["part"], shown["grid"]) == (3, 2, 2, "16")
        assert shown["config"] == config.to_json()


def test_a_training_step_costs_about_three_predictions_and_more_memory() -> None:
    config = FFNOConfig.tiny()
    forward, train = (BenchmarkEntry(config, BenchmarkCase(task, (16,)), part=1) for task in ("forward", "train"))
    assert 2.5 < train.flops("plain").total / forward.flops("plain").total < 3.2
    assert train.memory() > 2 * forward.memory()


def test_streaming_memory_models_see_each_frame_once() -> None:
    config = FFNOConfig.tiny()
    prediction = BenchmarkEntry(config, BenchmarkCase("forward", (16,)), part=1).flops("plain")
    rollout = BenchmarkEntry(config, BenchmarkCase("rollout", (16,), 1, 9), part=1).flops("plain")
    # Three earlier frames half way, then nine whole ones: far less than nine times four.
    assert rollout.matrix < 12 / 4 * prediction.matrix


def test_batches_are_split_where_memory_is_short() -> None:
    config, case = FFNOConfig.tiny(), BenchmarkCase("train", (16,), 8)
    one, two, eight = (memory_of(config, case, batch) for batch in (1, 2, 8))
    assert eight == pytest.approx(one + 7 * (two - one), rel=0.05)
    assert largest_part(config, case, memory_limit=PLENTY) == 4
    assert largest_part(config, case, memory_limit=two) == 2
    assert largest_part(config, case, memory_limit=1) == 1
    parts = BenchmarkEntry(config, case, part=2)
    whole, split = BenchmarkEntry(config, case, part=8).flops("plain"), parts.flops("plain")
    # Kernels are made once per part; the rest is the same work.
    assert split.total - split.kernel == pytest.approx(whole.total - whole.kernel, rel=0.01)
    assert parts.memory() < eight


@pytest.mark.parametrize("task", ["forward", "train", "rollout"])
def test_a_large_batch_is_timed_on_one_part_and_multiplied(task) -> None:
    config, case = FFNOConfig.tiny(), BenchmarkCase(task, (16,), 8, 2)
    assert largest_part(config, case, memory_limit=PLENTY) == 4
    whole = BenchmarkEntry(config, case, part=4).total(Timing((1.0, 3.0)))
    assert whole.seconds == pytest.approx((2.0, 6.0), abs=0.1)
    assert (whole.seconds > (2.0, 6.0)) == (task == "train")  # the optimiser's step comes once more


def test_all_models_that_learn_enter_in_their_published_size() -> None:
    assert set(MODELS) - set(benchmark_models((64,))) == {"persistence", "linear"}
    square = benchmark_models((64, 64))
    assert square["fno"].n_modes == 32
    assert square["fno, 8 modes"].n_modes == 8
    assert benchmark_models((32,))["ffno"] == FFNOConfig(n_modes=16)
    assert list(benchmark_models((16, 16), ["gkt", "fno"])) == ["gkt", "fno"]


def test_foreseen_time_grows_with_the_batch(monkeypatch) -> None:
    configs = {"small": FFNOConfig.tiny()}
    assert estimated_seconds(BenchmarkCase("forward", (16,)), configs, budget=100, least_rounds=3) > 100
    monkeypatch.setattr("ssno.evaluation.cost.seconds_of", lambda config, case: 1.0 + case.rollout_frames)
    one, many = (
        estimated_seconds(BenchmarkCase("rollout", (16,), batch, 4), configs, budget=0, least_rounds=3)
        for batch in (1, 4)
    )
    assert many == pytest.approx(4 * one)
    assert one >= 5 * 3  # the first frame takes 2, three further ones 1 each; three rounds at least


def test_unknown_models_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown name `gtk`. Did you mean `gkt`"):
        benchmark_models((64,), ["gtk"])
    with pytest.raises(ValueError, match="`models` names 'linear', which has nothing to train"):
        benchmark_models((64,), ["linear"])


def test_measuring_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    BenchmarkEntry(FFNOConfig.tiny(), BenchmarkCase("forward", (16,)), part=1).once()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", (16,)), "`task` must be one of 'forward', .*, 'rollout', got 'predict'"),
        (("train", (16,), 0), "must be at least 1, got train, 16 points, batch 0"),
        (("train", ()), "`grid`, `batch` and `rollout_frames` must be at least 1"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_impossible_cases_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        BenchmarkCase(*arguments)


def test_only_the_first_prediction_samples_kernels(monkeypatch) -> None:
    sampled = []
    real = SSNO.grid_weights
    monkeypatch.setattr(SSNO, "grid_weights", lambda model, *a, **b: sampled.append(1) or real(model, *a, **b))
    counts = {}
    for task in ("cold", "warm", "stream"):
        entry = BenchmarkEntry(SSNOConfig.tiny(), BenchmarkCase(task, (16,)), part=1)
        sampled.clear()
        for _ in range(3):
            entry.once()
        counts[task] = len(sampled)
    assert counts == {"cold": 3, "warm": 1, "stream": 1}


def test_a_case_has_a_precision() -> None:
    rows = [
        run_benchmark(
            BenchmarkCase("warm", (16,), precision=precision),
            {"ssno": SSNOConfig.tiny()},
            budget=0,
            least_rounds=2,
            memory_limit=2**30,
        )[0].to_json()
        for precision in ("float32", "bf16", "float64")
    ]
    assert [row["precision"] for row in rows] == ["float32", "bf16", "float64"]
