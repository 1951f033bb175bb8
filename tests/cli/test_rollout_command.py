"""`ssno rollout`: errors of every step and pictures, on the run's grid and on another."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from ssno.cli.main import main
from ssno.cli.rollout import field_errors, show, title_of
from ssno.data.trajectories import Trajectories
from ssno.data.units import PhysicalUnits
from ssno.evaluation.examples import Examples, make_examples
from ssno.forecasting.divergence import Divergence
from ssno.models.pretrained import save_weights
from ssno.models.registry import model_config
from ssno.runs.log import Silent
from ssno.runs.open import open_run
from ssno.training.train import train


def run_and_data(folder, *, n_dims: int = 1, fields: int = 1):
    grid = (16,) * n_dims
    array = np.random.default_rng(0).normal(size=(20, 8, fields, *grid)).astype(np.float32)
    np.savez(folder / "mine.npz", u=array)
    names = ["u", "v"][:fields]
    data = Trajectories.from_array(array, lengths=[4.0] * n_dims, fields=names, dt=0.5)
    torch.manual_seed(0)
    model = model_config("ssno:tiny", n_dims=n_dims, in_channels=fields, out_channels=fields).build()
    settings = {"epochs": 1, "batch_size": 10, "optimizer": "adamw", "learning_rate": 3e-3}
    train(model, data, folder=folder / "run", reporter=Silent(), **settings)
    words = {"path": "mine.npz", "axes": " ".join(["batch time channel", *"xy"[:n_dims]]), "dt": 0.5}
    described = {**words, "lengths": [4.0] * n_dims, "fields": names}
    document = json.loads((folder / "run" / "config.json").read_text())
    document["run"] = {"data": described, "model": document["config"], "train": document["run"]["train"]}
    (folder / "run" / "config.json").write_text(json.dumps(document))


def test_errors_are_those_of_the_rollout_and_pictures_lie_in_the_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run_and_data(tmp_path)
    main(["rollout", "run", "--trajectories", "1", "0", "--json", "--no-animate"])
    printed = json.loads(capsys.readouterr().out)
    opened = open_run("run")
    seen = make_examples(opened.forecaster, opened.load("test"), [1, 0])
    assert (seen.input_frames, len(seen.predicted_times)) == (4, 4)
    np.testing.assert_allclose([step["rel_l2"] for step in printed["steps"]], seen.step_errors().T.numpy(), rtol=1e-6)
    assert [step["time"] for step in printed["steps"]] == [2.0, 2.5, 3.0, 3.5]
    names = {path.name for path in (tmp_path / "run" / "rollout").iterdir()}
    assert names == {"test-0.png", "test-1.png", "test-error.png"}
    stated = replace(opened.load("test"), units=PhysicalUnits(time="s"))
    show(seen, [], name="run", data=stated)
    assert "time (s)" in capsys.readouterr().out
    main(["rollout", "run", "--no-draw", "--out", "moving"])
    (moving,) = (tmp_path / "moving").iterdir()
    assert moving.suffix in (".gif", ".mp4")
    capsys.readouterr()
    main(["rollout", "run", "--resolution", "8", "--no-draw", "--no-animate"])
    out = capsys.readouterr().out
    assert "8 points" in " ".join(out.split())
    assert "trajectory 0" in out


def test_pictures_are_not_written_through_links_in_a_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run_and_data(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for verb in ("rollout", "inspect"):
        link = tmp_path / "run" / verb
        link.symlink_to(tmp_path / "elsewhere")
        for run in ("run", "run/last"):
            with pytest.raises(SystemExit) as ended:
                main([verb, run])
            assert ended.value.code == 2
            assert f"{verb} is a link out of its run folder" in capsys.readouterr().err
        link.unlink()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_data_on_another_grid_are_warned_of(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    main(["data", "generate", "heat", "--preset", "tiny", "--resolution", "32", "--dimensions", "1"])
    main(
        ["train", "heat", "--model", "ssno:tiny", "--data.resolution", "16", "--train.epochs", "1", "--name", "coarse"]
    )
    capsys.readouterr()
    quiet = ["--no-draw", "--no-animate"]
    main(["rollout", "runs/coarse", "--data", "heat", *quiet])
    told = "WARNING: these data have 32 points, coarse was trained on 16."
    assert told in capsys.readouterr().err
    for verb in ("evaluate", "report"):
        main([verb, "runs/coarse", "--data", "heat"])
        assert told in capsys.readouterr().err
    for words in (["--data", "heat", "--resolution", "16"], []):
        main(["rollout", "runs/coarse", *words, *quiet])
        assert "WARNING" not in capsys.readouterr().err


def test_two_dimensions_and_several_fields(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run_and_data(tmp_path, n_dims=2, fields=2)
    main(["rollout", "run", "--split", "valid", "--out", "pictures", "--no-animate"])
    assert "Pictures: " in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert names == {"valid-0-u.png", "valid-0-v.png", "valid-error.png"}


def test_other_data_can_be_named_and_no_index_is_refused(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run_and_data(tmp_path)
    np.savez("other.npz", u=2 * np.load("mine.npz")["u"])
    main(["rollout", "run", "--data", "other.npz", "--json", "--no-draw", "--no-animate"])
    told = capsys.readouterr()
    opened = open_run("run")
    other = opened.alike("other.npz").load("test")
    assert (other.time_step, other.axes[0].length) == (0.5, 4.0)
    seen = make_examples(opened.forecaster, other, [0])
    errors = [step["rel_l2"] for step in json.loads(told.out)["steps"]]
    np.testing.assert_allclose(errors, seen.step_errors().T.numpy(), rtol=1e-6)
    assert "WARNING" not in told.err
    np.save("turned.npy", 2 * np.load("mine.npz")["u"][:, :, 0].transpose(2, 0, 1))
    main(["rollout", "run", "--no-draw", "--no-animate", "--data", "turned.npy", "--axes", "x batch time", "--json"])
    turned = json.loads(capsys.readouterr().out)["steps"]
    np.testing.assert_allclose([step["rel_l2"] for step in turned], errors, rtol=1e-6)
    main(["evaluate", "run", "--data", "turned.npy", "--axes", "x batch time", "--json"])
    (evaluation,) = json.loads(capsys.readouterr().out)
    assert (evaluation["points"], evaluation["dataset"]) == ([16], "turned")
    for verb in ("rollout", "evaluate", "report"):
        with pytest.raises(SystemExit):
            main([verb, "run", "--axes", "x batch time"])
        assert "`--axes` says how to read other data than the run's own" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["rollout", "run", "--data", "missing.npz"])
    assert "missing.npz" in capsys.readouterr().err
    with pytest.raises(ValueError, match="`indices` must name at least one trajectory"):
        make_examples(opened.forecaster, opened.load("test"), [])


def test_other_files_are_cut_as_that_of_training_was(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    angle = 2 * np.pi * np.arange(16) / 16 + 0.1 * np.arange(200)[:, None]
    np.save("long.npy", np.sin(angle).astype(np.float32))
    np.save("next.npy", np.sin(angle + 20).astype(np.float32))
    cut = ["--data.axes", "time x", "--data.segment", "10", "--data.time-index", "20:"]
    main(["train", "long.npy", "--model", "ssno:tiny", "--train.epochs", "1", "--name", "cut", *cut])
    capsys.readouterr()
    for further in ([], ["--dt", "1"]):
        main(["evaluate", "runs/cut", "--data", "next.npy", "--split", "all", "--json", *further])
        (evaluation,) = json.loads(capsys.readouterr().out)
        assert (evaluation["trajectories"], len(evaluation["times"])) == (18, 10 - 4), "four frames are given"
    main(["predict", "runs/cut", "--input", "next.npy", "--output", "later.h5", "--steps", "3", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["trajectories"], told["times"]) == (1, [200.0, 202.0])


def test_a_forecast_that_is_not_finite_has_infinite_errors() -> None:
    from ssno.evaluation.examples import Examples

    seen = Examples((0,), torch.ones(1, 3, 1, 4), torch.full((1, 2, 1, 4), torch.nan), (0.0, 1.0, 2.0))
    assert seen.step_errors().isinf().all()


def grow(folder, factor: float) -> None:
    """Make the run's model so wild that every step adds about this many units."""
    forecaster = open_run(folder / "run").forecaster
    weights = forecaster.model.state_dict()
    for name, value in weights.items():
        if name.startswith("head.") and name.endswith("bias"):
            value.add_(factor)
    save_weights(folder / "run", weights)


def test_a_forecast_that_runs_away_is_shown_up_to_there_and_ends_with_code_3(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run_and_data(tmp_path)
    quiet = ["--no-draw", "--no-animate"]
    main(["rollout", "run", *quiet, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["trained_steps"], told["steps_asked"], told["recorded"], told["divergences"]) == (4, 4, True, [])
    grow(tmp_path, 15.0)
    with pytest.raises(SystemExit, match="3"):
        main(["rollout", "run", "--no-animate", "--trajectories", "1"])
    out = capsys.readouterr().out
    assert "! u: the mean leaves the range of the training data at step 1 (trajectory 1): " in out
    assert "! trajectory 1 diverges: more than 10 times larger than the data from step 4 on" in out
    assert "Stopped: only the 3 of 4 steps before are written; use --on-divergence continue for all." in out
    assert {path.name for path in (tmp_path / "run" / "rollout").iterdir()} == {"test-1.png", "test-error.png"}
    with pytest.raises(SystemExit, match="3"):
        main(["rollout", "run", *quiet, "--trajectories", "1", "--on-divergence", "continue", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (len(told["steps"]), told["divergences"]) == (4, [{"trajectory": 1, "step": 3, "reason": "too large"}])
    assert {"field", "what", "step", "value", "low", "high"} < set(told["departures"][0])
    main(["evaluate", "run"])
    doubt = "First warning: u: the smallest value leaves the range of the training data at step 1 (trajectory 0): "
    assert doubt in capsys.readouterr().out
    main(["report", "run"])
    assert doubt in (tmp_path / "run" / "report.html").read_text()
    grow(tmp_path, 1000.0)
    with pytest.raises(SystemExit, match="3"):
        main(["rollout", "run", *quiet])
    assert "more than 10 times larger than the data from step 1 on. No step before" in capsys.readouterr().err


def test_titles_say_the_model_the_error_before_divergence_and_its_step() -> None:
    truth = torch.ones(2, 5, 1, 4)
    divergences = (Divergence(trajectory=7, step=2, reason="too large"),)
    seen = Examples((3, 7), truth, 1.5 * truth[:, 1:], tuple(map(float, range(5))), divergences=divergences)
    errors = field_errors(seen, 1, 0)
    assert errors == pytest.approx([0.5] * 4)
    words = {"model": "ks-ssno", "field": "u"}
    assert title_of(seen, 0, errors, **words) == "ks-ssno: u of trajectory 3, relative error 0.5"
    told = title_of(seen, 1, [0.1, 0.3, 1e20, 1e30], **words)
    assert told == "ks-ssno: u of trajectory 7, relative error 0.2, diverged at step 3"
