"""Evaluations of runs on disk: what is scored, against what, and what is written."""

import numpy as np
import pytest
import torch

from ssno.data.load import DataOptions
from ssno.data.windows import Window
from ssno.evaluation.evaluate import evaluate, evaluate_ensemble, fingerprint, rows_of
from ssno.evaluation.record import read_evaluation
from ssno.evaluation.solver import SAME_GRID
from ssno.evaluation.trivial import TRIVIAL
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import EVERY, score
from ssno.layers.memory import MemoryOptions
from ssno.models.ssno import SSNOConfig
from ssno.runs.checkpoint import Progress, save_checkpoint
from ssno.runs.load import load_forecaster
from ssno.runs.open import open_run
from ssno.training.objective import WeightAverage, run_tensors


def test_an_evaluation_holds_the_scores_of_the_model_and_of_the_rules(make_run) -> None:
    folder = make_run(seed=3)
    found = evaluate(folder)
    data = open_run(folder).load("test")
    plain = score(load_forecaster(folder), data, metrics=EVERY)
    assert {name: found.scores.means[name] for name in plain.means} == plain.means
    assert set(found.scores.means) - set(plain.means) == {"skill", "rel_l2_anomaly"}
    assert (found.name, found.model, found.seed, found.dataset, found.split) == ("run", "ffno", 3, "ks", "test")
    assert (found.points, found.trajectories, len(found.times)) == ((32,), 3, 5)
    assert found.given_until == pytest.approx(0.1)
    assert found.times[0] == pytest.approx(0.2)
    truth = data.read(range(3)).state
    persistence = (truth[:, 1:2] - truth[:, 2:]).flatten(1).norm(dim=1) / truth[:, 2:].flatten(1).norm(dim=1)
    assert found.baselines["persistence"].means["rel_l2"] == pytest.approx(persistence.mean().item(), rel=1e-5)
    assert "rel_l2_normalised" in found.scores.means
    assert "rel_l2_normalised" not in found.baselines["persistence"].means, "a rule has no units of its own"
    assert found.seconds > 0
    assert {"commit", "torch", "processor"} <= found.provenance.keys()
    assert found.config["provenance"] == {"commit": "made up"}


def test_it_is_written_to_the_run_and_read_back_equal(make_run) -> None:
    folder = make_run()
    found = evaluate(folder)
    assert read_evaluation(folder / "evaluation.json") == found
    assert [row.name for row in rows_of(found)] == ["run", *TRIVIAL]
    assert rows_of(found)[0].scores.means["seconds"] == found.seconds


def test_other_splits_grids_frames_and_checkpoints_have_files_of_their_own(make_run) -> None:
    folder = make_run()
    model = load_forecaster(folder).model
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    save_checkpoint(folder / "last", run_tensors(model, optimiser, None), Progress())
    evaluate(folder, split="valid")
    finer = evaluate(folder, resolution=64)
    evaluate(folder, time_index="0:6", trajectories=2)
    last = evaluate(folder / "last")
    evaluate(folder, data=open_run(folder).load("train"), split="train")
    assert finer.points == (64,)
    assert last.name == "run/last"
    assert {path.name for path in folder.glob("evaluation*")} == {
        "evaluation-valid.json",
        "evaluation-64.json",
        "evaluation-frames0_6-first2.json",
        "evaluation-last.json",
        "evaluation-ks-train.json",
    }


def test_a_finer_grid_is_told_to_the_model(make_run) -> None:
    folder = make_run(config=SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)))
    found = evaluate(folder, resolution=64, write=False)
    data = open_run(folder).load("test", resolution=64)
    frames = data.read(range(3)).state
    forecast = rollout(load_forecaster(folder), frames[:, :2], 5, spacing=data.spacing)
    errors = (forecast - frames[:, 2:]).flatten(1).norm(dim=1) / frames[:, 2:].flatten(1).norm(dim=1)
    assert found.scores.means["rel_l2"] == pytest.approx(errors.mean().item(), rel=1e-5)
    assert not (folder / "evaluation-64.json").exists()
    # One step from true frames: rollouts of one step, begun at every frame.
    steps = [rollout(load_forecaster(folder), frames[:, t - 1 : t + 1], 1, spacing=data.spacing) for t in range(1, 6)]
    wrong = (torch.cat(steps, dim=1) - frames[:, 2:]).flatten(1).norm(dim=1) / frames[:, 2:].flatten(1).norm(dim=1)
    assert found.scores.means["rel_l2_onestep"] == pytest.approx(wrong.mean().item(), rel=1e-4)


def test_a_checkpoint_gives_the_averaged_weights_of_a_run_that_averages(make_run) -> None:
    folder = make_run()
    model = load_forecaster(folder).model
    average = WeightAverage(model, 0.9)
    for value in average.values.values():
        value.mul_(2)
    save_checkpoint(folder / "last", run_tensors(model, torch.optim.SGD(model.parameters()), average), Progress())
    loaded = load_forecaster(folder / "last").model
    for (name, old), (_, new) in zip(model.named_parameters(), loaded.named_parameters(), strict=True):
        torch.testing.assert_close(new, 2 * old, msg=name)


def test_a_checkpoint_of_another_model_is_refused(make_run) -> None:
    folder = make_run()
    model = torch.nn.Linear(2, 2)
    save_checkpoint(folder / "last", run_tensors(model, torch.optim.SGD(model.parameters()), None), Progress())
    with pytest.raises(ValueError, match=r"The checkpoint in .*last does not fit the model of its run"):
        load_forecaster(folder / "last")


def test_the_solver_joins_when_asked(make_run, short_ks) -> None:
    folder = make_run()
    found = evaluate(folder, solver=True, trajectories=1, data=DataOptions(name=str(short_ks)), write=False)
    assert found.points == (64,)
    assert found.baselines[SAME_GRID].means["rel_l2"] < 1e-6
    with pytest.raises(ValueError, match="`solver` needs the options of the data, but .* was started from Python"):
        evaluate(make_run("bare", described=False), data=open_run(folder).load("test"), solver=True)


def test_a_run_from_python_needs_data(make_run) -> None:
    bare = make_run("bare", described=False)
    with pytest.raises(ValueError, match="was started from Python, whose data have no description"):
        evaluate(bare)
    found = evaluate(bare, data=open_run(make_run()).load("test"))
    assert read_evaluation(bare / "evaluation.json") == found


def test_a_checkpoint_whose_data_are_not_here_names_the_command_and_the_option(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = (
        r"Make it with: ssno data generate ks --viscosity 0.1 --preset paper Or name other data: --data NAME_OR_PATH"
    )
    with pytest.raises(FileNotFoundError, match=asked):
        evaluate("ks-0.1-64")


def test_given_data_are_complete(make_run) -> None:
    folder = make_run()
    with pytest.raises(
        ValueError, match="`resolution`, `time_index` and `trajectories` do not apply to `Trajectories` in `data`"
    ):
        evaluate(folder, data=open_run(folder).load("test"), resolution=16)
    with pytest.raises(ValueError, match="`trajectories` must lie between 1 and the 3 of 'test', got 4"):
        evaluate(folder, trajectories=4)


def test_the_fingerprint_sees_every_scored_number_and_nothing_else(make_run) -> None:
    data = open_run(make_run()).load("test")
    window = Window(size=2)
    assert fingerprint(data, window, batch_size=1) == fingerprint(data.in_memory(), window, batch_size=3)
    assert fingerprint(data, Window(size=3)) != fingerprint(data, window)
    assert fingerprint(data.select(indices=[0, 2, 1]), window) != fingerprint(data, window)


def test_an_ensemble_is_evaluated_with_its_calibration(make_run) -> None:
    folders = [make_run(f"run{seed}", seed=seed) for seed in range(3)]
    found = evaluate_ensemble(folders)
    assert read_evaluation(folders[0] / "evaluation-ensemble3.json") == found
    assert (found.name, found.seed) == ("ensemble of 3", None)
    assert found.config["members"] == ["run0", "run1", "run2"]
    assert len(found.calibration.spread) == len(found.times)
    # The mean of the members' forecasts, computed by hand; its error in normalised units is that of the calibration.
    data = open_run(folders[0]).load("test")
    frames, members = data.read(range(3)).state, [load_forecaster(folder) for folder in folders]
    mean = torch.stack([rollout(member, frames[:, :2], 5) for member in members]).mean(0)
    units = members[0].units(frames[:, :2])
    error = (units.encode(mean) - units.encode(frames[:, 2:])).square().mean((0, 2, 3)).sqrt()
    np.testing.assert_allclose(found.calibration.error, error, rtol=1e-4)
    assert found.scores.means["rel_l2"] == pytest.approx(
        ((mean - frames[:, 2:]).flatten(1).norm(dim=1) / frames[:, 2:].flatten(1).norm(dim=1)).mean().item(), rel=1e-5
    )


def test_batches_hold_at_least_one_trajectory(make_run) -> None:
    with pytest.raises(ValueError, match="`batch_size` must be at least 1, got -1"):
        evaluate(make_run(), batch_size=-1)
