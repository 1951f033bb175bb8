"""The real entries on small sizes: they build, agree with their references, and count useful work as documented."""

import numpy as np
import pytest
from benchmarks.entry import Unavailable, difference
from benchmarks.ks_ssno import solve
from benchmarks.serving import Server
from benchmarks.useful import forward_gflop, training_gflop

from benchmarks import generation, growth, ks_case, rollouts, training
from ssno.models.ssno import SSNOConfig
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky


@pytest.mark.parametrize(
    ("grid", "batch", "frames", "gflop"),
    [((32,), 32, 25, 5.5), ((64,), 32, 25, 12.8), ((128,), 32, 25, 32.2), ((64, 64), 4, 4, 29.0)],
)
def test_useful_work_is_that_of_the_roofline_table(grid, batch, frames, gflop) -> None:
    config = SSNOConfig(n_dims=len(grid))
    assert forward_gflop(config, grid, batch=batch, frames=frames) == pytest.approx(gflop, abs=0.06)
    tripled = training_gflop(config, grid, batch=batch, frames=frames)
    assert tripled == pytest.approx(3 * gflop, abs=0.18)


@pytest.mark.parametrize("grid", [(8,), (8, 8)])
def test_engines_have_the_gradients_of_the_listing(grid) -> None:
    tasks = training.against_the_listing(grid, batch=2, frames=5)
    assert set(tasks) == {"listing", *training.TRAINING, "bf16"}
    for name, task in tasks.items():
        assert (task.expected is None) == (name == "listing")
        if task.expected is not None:
            assert difference(task.run(), task.expected()) < (task.tolerance or 1e-4)


def test_ffno_takes_part_with_all_modes() -> None:
    tasks = training.against_ffno((16,), batch=1, frames=2)
    assert set(tasks) == {"ffno", *training.TRAINING, "bf16"}
    loss, *gradients = tasks["ffno"].run()
    assert loss > 0
    assert any(8 in gradient.shape for gradient in gradients), "16 points carry 8 modes"


def test_streaming_gives_the_forecast_of_the_listing() -> None:
    task = rollouts.against_the_listing((8,), batch=2)["streaming"]
    assert task.run().shape == (2, 22, 1, 8)
    assert difference(task.run(), task.expected()) < 1e-4


def test_every_learned_model_predicts_frames() -> None:
    tasks = rollouts.against_baselines((32,))
    assert {"ssno", "ffno", "fno", "unet", "gkt", "factformer"} <= set(tasks)
    assert {task.run().shape for task in tasks.values()} == {(1, rollouts.LATENCY_FRAMES, 1, 32)}
    assert difference(tasks["ssno"].run(), tasks["ssno"].expected()) < 1e-4
    assert not any(name.startswith("ssno") for name in rollouts.baselines((32,)))


@pytest.mark.parametrize(
    "size", [growth.Size(grid=(8, 4)), growth.Size(grid=(4, 4, 4), frames=1), growth.Size(states=8)]
)
def test_sweeps_have_the_gradients_of_the_listing(size) -> None:
    task = growth.step_of(size)
    assert difference(task.run(), task.expected()) < 1e-3


def test_a_cube_is_forecast_as_by_the_listing() -> None:
    tasks = growth.forecast_cube((4, 4, 4))
    assert difference(tasks["pytorch"].run(), tasks["listing"].run()) < 1e-4


def test_the_case_is_the_one_that_the_dataset_has() -> None:
    problem = KuramotoSivashinsky(viscosity=ks_case.VISCOSITY)
    assert (problem.points, problem.length, problem.frames) == (ks_case.POINTS, ks_case.LENGTH, ks_case.FRAMES)
    assert problem.dt == pytest.approx(ks_case.END / ks_case.STEPS)
    start = ks_case.initial()
    assert start.shape == (problem.preferred_batch, problem.points)
    assert 0.55 < np.sqrt((start**2).mean()) < 0.75


def test_without_exponax_the_entry_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setenv(generation.VARIABLE, "")
    with pytest.raises(Unavailable, match="exponax is not measured: SSNO_EXPONAX_PYTHON is '', .*pip install exponax"):
        generation.against_exponax()


def test_our_worker_starts_from_the_given_states() -> None:
    frames = solve(ks_case.initial(2))
    assert frames.shape == (2, ks_case.FRAMES, ks_case.POINTS)
    assert np.array_equal(frames[:, 0], ks_case.initial(2))
    assert np.isfinite(frames).all()


WORKER = """
import os
import numpy as np
from benchmarks.serving import serve
runs = []
def run():
    runs.append(1)
    return np.array([len(runs), len(os.sched_getaffinity(0))])
serve(run)
"""


@pytest.fixture
def worker(tmp_path) -> dict[str, str]:
    (tmp_path / "made_up_worker.py").write_text(WORKER)
    return {"PYTHONPATH": str(tmp_path)}


def test_a_worker_runs_on_command_on_its_core_and_hands_over_its_answer(worker) -> None:
    server = Server("made_up_worker", cores=generation.cores()[:1], variables=worker)
    try:
        assert server.answer().tolist() == [1, 1]
        server.run()
        server.run()
        assert server.answer().tolist() == [3, 1]
    finally:
        server.close()
    assert server.process.returncode == 0


def test_a_worker_that_fails_is_reported(worker) -> None:
    with pytest.raises(RuntimeError, match=r"-m benchmarks.no_such_worker said '' instead of 'ready' \(exit code 1\)"):
        Server("benchmarks.no_such_worker")
    server = Server("made_up_worker", variables=worker)
    server._say("dance")
    with pytest.raises(RuntimeError, match="-m made_up_worker said '' instead of 'done'"):
        server.finish()
