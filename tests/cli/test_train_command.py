"""`ssno train` as people type it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from ssno.cli.main import main
from ssno.cli.train import parse, report_check, run_name
from ssno.models.ssno import SSNOConfig
from ssno.runs.checkpoint import has_checkpoint, load_checkpoint, read_progress
from ssno.runs.log import read_log
from ssno.runs.run import Run, read_run
from ssno.training.checks import ResumeCheck
from ssno.training.processes import EXIT_DIVERGED, EXIT_INTERRUPTED, EXIT_LOST, launch

SMALL = ["--model", "ssno:tiny", "--data.axes", "batch time x", "--train.batch-size", "8"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with a file of travelling waves in it."""
    rng = np.random.default_rng(0)
    x, t = 2 * np.pi * np.arange(16) / 16, 0.2 * np.arange(8)[:, None]
    waves = np.sin(rng.integers(1, 3, (40, 1, 1)) * (x - t) + rng.uniform(0, 6, (40, 1, 1)))
    np.save(tmp_path / "waves.npy", waves.astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ssno(*words: str) -> None:
    main(["train", "waves.npy", *SMALL, *words])


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ssno", "train", *words]


def test_a_run_leaves_what_the_contracts_say(here, capsys) -> None:
    ssno("--train.epochs", "2", "--model.d-state", "4", "--json")
    result = json.loads(capsys.readouterr().out)
    assert {"rel_l2", "rel_l2_onestep", "rel_l2_normalised", "folder", "epoch"} <= result.keys()
    folder = here / "runs" / "waves-ssno"
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "model.safetensors", "metrics.jsonl", "climatology.safetensors", "last", "best")
    }
    config = json.loads((folder / "config.json").read_text())
    assert config["run"]["model"]["d_state"] == 4
    assert config["run"]["train"]["epochs"] == 2
    assert config["run"]["window"]["size"] == 4


@pytest.mark.parametrize("dataset", ["burgers", "torus-vis"])
@pytest.mark.parametrize("config", [False, True])
def test_the_dataset_may_stand_anywhere(here, dataset, config) -> None:
    (here / "run.json").write_text(json.dumps(Run().to_json()))
    chosen = ["--config", "run.json"] if config else []
    options = ["--train.epochs", "1", "--data.context", "none", "--name", dataset]
    first = parse([dataset, *options, *chosen])
    assert first.run().data.name == dataset
    for place in (2, 6):  # after a list, a word belongs to the list
        words = [*options[:place], dataset, *options[place:], *chosen]
        assert parse(words).run() == first.run()
        assert parse(words).overrides == first.overrides
    assert "data.name" not in parse([*options, *chosen]).overrides
    assert parse(["--data.name", dataset, *options]).run() == parse([dataset, *options]).run()


def test_the_dataset_of_a_resumed_run_is_heard_wherever_it_stands(here, capsys) -> None:
    ssno("--train.epochs", "1")
    np.save("other.npy", np.load("waves.npy"))
    with pytest.raises(SystemExit):
        main(["train", "--resume", "--name", "waves-ssno", "other.npy"])
    assert "data.name" in capsys.readouterr().err


def model_of(here, name: str) -> dict:
    return json.loads((here / "runs" / name / "config.json").read_text())["run"]["model"]


def test_the_fast_recipe_suits_the_model_to_periodic_data_unless_told_otherwise(here) -> None:
    ssno("--train.epochs", "1", "--name", "ours")
    assert model_of(here, "ours")["boundary"] == "periodic"
    assert model_of(here, "ours")["modes"]["initialisation"] == "grid"
    ssno("--train.epochs", "1", "--name", "told", "--model.boundary", "zero", "--model.modes.initialisation", "lin")
    assert model_of(here, "told")["boundary"] == "zero"
    assert model_of(here, "told")["modes"] == {**model_of(here, "ours")["modes"], "initialisation": "lin"}
    assert model_of(here, "told")["coordinates"] is False
    ssno("--train.epochs", "1", "--name", "paper", "--recipe", "paper")
    assert model_of(here, "paper")["boundary"] == "zero"
    assert model_of(here, "paper")["coordinates"] is True


def test_a_config_file_repeats_a_run(here) -> None:
    ssno("--train.epochs", "1", "--name", "first")
    main(["train", "--config", "runs/first", "--name", "second"])
    first, second = (load_checkpoint(here / "runs" / name / "last")[0] for name in ("first", "second"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    main(["train", "--config", "runs/first/config.json", "--name", "third", "--train.seed", "1"])
    third = load_checkpoint(here / "runs" / "third" / "last")[0]
    assert any(not torch.equal(first[name], third[name]) for name in first)


def test_recipes_set_defaults_that_options_override(here) -> None:
    ssno("--recipe", "paper", "--train.epochs", "1", "--name", "paper")
    options = json.loads((here / "runs" / "paper" / "config.json").read_text())["run"]["train"]
    assert options["epochs"] == 1
    assert options["normalisation"] == "minmax"
    assert options["schedule"] == "cosine"


def test_the_window_follows_the_memory_and_cannot_contradict_it(here, capsys) -> None:
    ssno("--train.epochs", "1", "--model.memory.window", "2", "--name", "two")
    assert json.loads((here / "runs" / "two" / "config.json").read_text())["run"]["window"]["size"] == 2
    with pytest.raises(SystemExit, match="2"):
        ssno("--train.epochs", "1", "--model.memory.window", "2", "--window.size", "3", "--name", "three")
    told = " ".join(capsys.readouterr().err.split())
    assert "`window.size` is 3, but `model.memory.window` is 2" in told


def test_fourier_modes_follow_the_grid_unless_they_are_given(here, capsys) -> None:
    words = ["train", "waves.npy", "--data.axes", "batch time x", "--model", "ffno", "--model.hidden-channels", "8"]
    main([*words, "--train.epochs", "1", "--name", "followed"])
    assert json.loads((here / "runs" / "followed" / "config.json").read_text())["config"]["n_modes"] == 8
    with pytest.raises(SystemExit):
        main([*words, "--model.n-modes", "40", "--name", "given"])
    assert "n_modes" in capsys.readouterr().err


def test_fine_tuning_starts_from_the_given_weights(here) -> None:
    ssno("--train.epochs", "1", "--name", "first")
    ssno("--start-from", "runs/first", "--name", "tuned", "--train.epochs", "1", "--train.learning-rate", "1e-30")
    first, tuned = ((here / "runs" / name / "model.safetensors").read_bytes() for name in ("first", "tuned"))
    assert first == tuned


def test_a_dry_run_forecasts_and_writes_nothing(here, capsys) -> None:
    ssno("--dry-run", "--json")
    cost = json.loads(capsys.readouterr().out)
    assert cost["steps"] == 80
    assert cost["seconds"] > 0
    assert cost["memory_bytes"] > 10**7
    assert cost["disk_bytes"] > 1000
    assert not (here / "runs").exists()
    ssno("--dry-run")
    assert re.search(r"time .* \d+(\.\d)? (ms|s|min) ", capsys.readouterr().out)


def test_missing_data_say_how_to_make_them(here, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train", "ks"])
    assert stopped.value.code == 2
    assert "ssno data generate ks" in capsys.readouterr().err


def test_resume_refuses_other_options_and_takes_more_epochs(here, capsys) -> None:
    ssno("--train.epochs", "1", "--name", "run", "--resume", "auto")  # new: it starts
    for words, named in (
        (["--train.learning-rate", "1"], r"train.learning_rate (was 0.01, now 1.0)"),
        (["--data.resolution", "8"], "data.resolution (was None, now 8)"),
        (["--train.no-predict-increment"], "train.predict_increment (was True, now False)"),
        (["--recipe", "paper"], "train.normalisation (was zscore, now minmax)"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["train", "--resume", "--name", "run", *words])
        assert stopped.value.code == 2
        assert named in capsys.readouterr().err
    ssno("--train.epochs", "2", "--name", "run", "--resume", "auto")  # there: it goes on
    assert "train.epochs was 1 and is now 2" in capsys.readouterr().err
    assert load_checkpoint(here / "runs" / "run" / "last")[1].epoch == 2


def test_a_resumed_run_keeps_its_batch_although_the_recipe_would_choose_another(here, monkeypatch) -> None:
    words = ["train", "waves.npy", "--data.axes", "batch time x", "--model", "ssno:tiny", "--name", "run"]
    words += ["--recipe", "fast", "--resume", "auto"]
    ran = []
    monkeypatch.setattr("ssno.cli.train.run_task", lambda task, **_: ran.append(task.options.batch_size))
    monkeypatch.setattr("ssno.cli.train.report_run", lambda *_, **__: None)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    main(words)
    monkeypatch.undo()
    monkeypatch.chdir(here)
    main([*words, "--train.epochs", "1", "--train.batch-size", str(ran[0])])
    main([*words, "--train.epochs", "2"])
    assert ran == [8]
    assert Run.from_json(json.loads((here / "runs" / "run" / "config.json").read_text())["run"]).train.batch_size == 8


def test_a_dry_run_never_generates(here, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train", "heat", "--generate", "--data.preset", "tiny", "--dry-run"])
    assert stopped.value.code == 0
    assert "dry run" in capsys.readouterr().out
    assert {path.name for path in here.iterdir()} == {"waves.npy"}


@pytest.mark.parametrize(("made", "code"), [(130, EXIT_INTERRUPTED), (1, 1)])
def test_a_training_whose_data_are_interrupted_is_interrupted(here, monkeypatch, made, code) -> None:
    def end(words: list[str]) -> None:
        raise SystemExit(made)

    monkeypatch.setattr("ssno.cli.train.run_command", end)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "heat", "--generate", "--data.preset", "tiny"])
    assert stopped.value.code == code


def test_missing_data_are_made_on_demand(here) -> None:
    data = ["heat", "--generate", "--data.preset", "tiny", "--data.resolution", "16"]
    main(["train", *data, "--model", "ssno:tiny", "--train.epochs", "1"])
    assert (here / "data" / "heat-tiny" / "manifest.json").exists()
    assert (here / "runs" / "heat-ssno" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["waves.npy", *SMALL, "--train.epocs", "3"], "--train.epochs"),
        (["waves.npy", "--model", "sno"], "Did you mean `ssno`"),
        (["waves.npy", "--model", "ssno:huge"], "the only named size of .ssno. is ssno:tiny"),
        (["waves.npy", "--model"], "`--model` needs a value"),
        (["waves.npy", *SMALL, "--model.d-state", "7"], "d_state"),
        (["waves.npy", *SMALL, "--model.in-channels", "3"], "in_channels = 3, but 'waves' has the fields u"),
        (["waves.npy", *SMALL, "--data.train", "99"], "`data.train` must lie between 1 and the"),
        (["waves.npy", *SMALL, "--data.time-index", "seven"], "`time_index` must be START:STOP"),
        (["waves.npy", *SMALL, "--recipe", "slow"], "`recipe` must be one of 'fast', 'paper', got 'slow'"),
        (["nowhere.h5"], "There is no file or folder 'nowhere.h5'"),
        (["--config", "nowhere.json"], "There is no file nowhere.json"),
        (["--resume", "--name", "nothing"], "There is no file runs/nothing"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_mistakes_end_in_a_clear_message_before_anything_is_written(here, capsys, words, message) -> None:
    import re

    with pytest.raises(SystemExit) as stopped:
        main(["train", *words])
    assert stopped.value.code == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ('{"modell": {}}', "Unknown name `modell`. Did you mean `model`"),
        ('{"train": {"epoch": 3}}', "Unknown name `train.epoch`. Did you mean `train.epochs`"),
        ('{"model": {"model": "__import__"}}', "Unknown name `__import__`"),
        ('{"model": 3}', "`model` must be an object"),
        ('{"context_time": "before"}', "`context_time` must be one of 'input', 'target', got 'before'"),
        ("[]", "must be an object"),
        ('{"provenance": {}, "run": {"train": {}}}', "started from Python"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_descriptions_are_refused(here, capsys, content, message) -> None:
    (here / "run.json").write_text(content)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--config", "run.json"])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "unet", "--data.resolution", "8"], "--model ssno takes any grid"),
        (["--model", "ffno", "--model.n-modes", "40"], "n_modes = 40"),
        (["--stop-after", "0"], "`stop_after` must be at least 1, got 0"),
    ],
)
def test_a_refused_training_leaves_nothing_behind(here, capsys, words, message) -> None:
    for _ in range(2):  # the second time nothing stands in the way
        with pytest.raises(SystemExit) as stopped:
            main(["train", "waves.npy", "--data.axes", "batch time x", "--name", "refused", *words])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
    assert not (here / "runs").exists()


def test_divergence_has_its_own_exit_code(here, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        ssno(
            "--train.learning-rate",
            "1e30",
            "--train.grad-clip",
            "0",
            "--train.schedule",
            "constant",
            "--train.epochs",
            "5",
        )
    assert stopped.value.code == EXIT_DIVERGED
    assert "Training diverged at step" in capsys.readouterr().err


def test_a_process_whose_fellow_is_gone_says_so(here, capsys, monkeypatch) -> None:
    def lost(*_, **__):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer")

    monkeypatch.setattr("ssno.cli.train.run_task", lost)
    for launched, code, told in ((True, EXIT_LOST, "another process of this training is gone"), (False, 70, "a bug")):
        if launched:
            monkeypatch.setenv("RANK", "0")
        else:
            monkeypatch.delenv("RANK")
        with pytest.raises(SystemExit) as stopped:
            ssno()
        assert stopped.value.code == code
        assert told in capsys.readouterr().err


def wait_for_step(folder, step: int, process: subprocess.Popen) -> None:
    index, deadline = folder / "last" / "checkpoint.json", time.monotonic() + 120
    while not (index.exists() and json.loads(index.read_text())["progress"]["step"] >= step):
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def terminate_and_resume(here, name: str, after: int, words: list[str]) -> None:
    """Run, end it from outside once a step is saved, resume to the end."""
    started = command("waves.npy", *SMALL, "--name", name, "--train.save-seconds", "0", *words)
    with subprocess.Popen(started, stderr=subprocess.PIPE, cwd=here, text=True) as process:
        wait_for_step(here / "runs" / name, after, process)
        process.terminate()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == EXIT_INTERRUPTED
    assert "Go on with --resume" in errors
    main(["train", "--resume", "--name", name])


def test_a_terminated_run_resumes_bitwise(here) -> None:
    """SIGKILL is tried by `--check-resume` below, and by tests/training/test_kill_campaigns.py."""
    words = ["--train.epochs", "8", "--train.noise-std", "0.01", "--train.evaluate-every", "4"]
    terminate_and_resume(here, "killed", 7, words)
    ssno("--name", "whole", "--train.save-seconds", "0", *words)
    assert_equal_runs(here / "runs" / "killed", here / "runs" / "whole")


def assert_equal_runs(first, second) -> None:
    left, right = (load_checkpoint(folder / "last")[0] for folder in (first, second))
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


def described(*, memory: int = 4, **more) -> dict:
    """A run as a config file describes it."""
    model = SSNOConfig.tiny().to_json()
    model["memory"]["window"] = memory
    train = {"epochs": 1, "batch_size": 8}
    return {"data": {"name": "waves.npy", "axes": "batch time x"}, "train": train, "model": model, **more}


def test_check_resume_proves_it_on_the_users_run(here, capsys) -> None:
    (here / "run.json").write_text(json.dumps(described(memory=2, window={"size": 2})))
    main(["train", "--config", "run.json", "--check-resume", "--json"])
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["exact"] is True
    assert verdict["tensors"] > 50
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("different", "told"),
    [((), "Exact: killed after step 3 of 8"), (("head.weight",), "Not exact: 1 of 60 differ: head")],
)
def test_the_check_of_resuming_is_told_in_words(monkeypatch, capsys, different, told) -> None:
    monkeypatch.setattr("ssno.cli.train.check_resume", lambda run: ResumeCheck(3, 8, 60, different))
    with pytest.raises(SystemExit) if different else nullcontext():
        report_check(Run(), as_json=False)
    assert capsys.readouterr().out.startswith(told)


@pytest.mark.parametrize("optimizer", ["soap", pytest.param("muon", marks=pytest.mark.verify)])
def test_two_processes_move_weights_alike_with_any_optimizer(here, optimizer) -> None:
    words = ["--train.optimizer", optimizer, "--train.learning-rate", "3e-3"]
    words += ["--train.epochs", "3", "--train.evaluate-every", "3"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    two = command("waves.npy", *SMALL, "--name", "two", *words, "--nproc", "2")
    subprocess.run(two, cwd=here, env=environment, check=True, timeout=120)
    ssno("--name", "one", *words)
    one, both = (
        [line["loss"] for line in read_log(here / "runs" / name) if line["kind"] == "step"] for name in ("one", "two")
    )
    assert len(one) >= 10
    np.testing.assert_allclose(both, one, rtol=2e-3)  # SOAP differed by 3e-4


def test_two_processes_follow_one_and_resume(here) -> None:
    """Two real processes, started as torchrun does: the losses of one, to 1e-5, SIGTERM and resume included."""
    words = ["--train.optimizer", "adamw", "--train.learning-rate", "3e-3", "--train.epochs", "5"]
    words += ["--train.noise-std", "0.01", "--train.batch-size", "7", "--train.evaluate-every", "5"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    several = ["--resume", "auto", "--nproc", "2"]  # new: it starts
    cut = command("waves.npy", *SMALL, "--name", "two", *words, *several, "--train.save-seconds", "0")
    started = subprocess.Popen(cut, cwd=here, env=environment, stderr=subprocess.PIPE, text=True)
    last = here / "runs" / "two" / "last"
    while not (has_checkpoint(last) and read_progress(last).step >= 3):
        assert started.poll() is None, started.communicate()[1]
        time.sleep(0.02)
    started.send_signal(signal.SIGTERM)
    told = started.communicate(timeout=120)[1]
    assert started.returncode == EXIT_INTERRUPTED, told
    assert "Stopped after step" in told
    assert "training in batches of 7 trajectories, 3.5 in each of 2 processes" in told
    assert not any(word in told for word in ("Traceback", "Warning", "[W", "death signal"))
    main(["train", "--resume", "--name", "two"])  # one process goes on where two stopped
    ssno("--name", "one", *words)
    one, both = (
        [line["loss"] for line in read_log(here / "runs" / name) if line["kind"] == "step"] for name in ("one", "two")
    )
    assert len(one) >= 20
    np.testing.assert_allclose(both, one, rtol=1e-5)


@pytest.mark.parametrize(("rank", "told"), [("0", 1), ("1", 0)])
def test_of_several_processes_the_first_tells_mistakes(here, capsys, monkeypatch, rank, told) -> None:
    monkeypatch.setenv("RANK", rank)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "nowhere.npy"])
    assert (stopped.value.code, capsys.readouterr().err.count("nowhere.npy")) == (2, told)


@pytest.mark.parametrize("number", ["abc", "0", "-2", "1.5"])
def test_processes_are_counted(here, capsys, number) -> None:
    with pytest.raises(SystemExit, match="2"):
        ssno("--nproc", number)
    assert f"`--nproc` must be a whole number from 1 on, got '{number}'." in capsys.readouterr().err


def test_a_split_without_trajectories_is_told(here, capsys) -> None:
    ssno("--train.epochs", "1", "--data.splits", "39", "1", "0", "--name", "untested")
    for verb in ("evaluate", "rollout", "report"):
        with pytest.raises(SystemExit, match="2"):
            main([verb, "runs/untested"])
        assert "waves.npy has no 'test' trajectories. Take another `split`." in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        ssno("--train.epochs", "1", "--data.splits", "39", "0", "1", "--name", "unvalidated")
    assert "`valid` of 'waves' has no trajectories" in capsys.readouterr().err
    assert not (here / "runs" / "unvalidated").exists()


def test_processes_end_with_the_code_of_the_one_that_failed(here, monkeypatch) -> None:
    (here / "mistaken.py").write_text("import os, sys\nsys.exit(2 if os.environ['RANK'] == '1' else 0)\n")
    monkeypatch.setenv("PYTHONPATH", str(here), prepend=os.pathsep)
    program = "from ssno.training.processes import launch; raise SystemExit(launch(['mistaken'], processes=2))"
    assert subprocess.run([sys.executable, "-c", program], timeout=300).returncode == 2  # PyTorch leaves sockets open
    with pytest.raises(ValueError, match="`processes` must be at least 1, got 0"):
        launch(["ssno"], processes=0)


def test_a_run_is_named_after_the_dataset_or_the_folder_it_reads(tmp_path) -> None:
    (folder := tmp_path / "ks-0.1-tiny").mkdir()
    for words, name in (
        ([str(folder)], "ks-0.1-tiny-ssno"),
        (["--data.path", str(folder)], "ks-0.1-tiny-ssno"),
        (["ks", "--data.path", str(folder)], "ks-ssno"),
        (["waves.npy"], "waves-ssno"),
    ):
        call = parse(words)
        assert run_name(call, call.run()) == name


def test_a_window_that_a_config_file_states_is_kept_if_it_fits(here, capsys) -> None:
    (here / "run.json").write_text(json.dumps(described(window={"size": 2})))
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--config", "run.json", "--name", "other"])
    assert "`window.size` is 2" in capsys.readouterr().err
    (here / "run.json").write_text(json.dumps(described(memory=2, window={"size": 2})))
    main(["train", "--config", "run.json", "--name", "kept"])
    assert read_run(here / "runs" / "kept").window.size == 2
    (here / "run.json").write_text(json.dumps(described()))
    main(["train", "--config", "run.json", "--name", "derived"])
    assert read_run(here / "runs" / "derived").window.size == SSNOConfig.tiny().frames_seen() == 4
