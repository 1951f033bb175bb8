"""What options may be, what recipes fill in, and what a run says by itself."""

from dataclasses import replace

import pytest
import torch
from tests.training.small_runs import tiny

from ssno.forecasting.rollout import rollout
from ssno.layers.memory import MemoryOptions
from ssno.models.registry import model_config
from ssno.models.ssno import SSNOConfig
from ssno.runs.log import Silent
from ssno.runs.options import TrainOptions, recipe
from ssno.runs.run import Run, resolve_run
from ssno.training.task import task_for
from ssno.training.train import train


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"epochs": 10**12}, "`epochs` must be at most 10000000, got 1000000000000"),
        ({"shuffle_buffer": -1}, "`shuffle_buffer` must not be negative, got -1"),
        ({"num_workers": 10**6}, "`num_workers` must be at most 256, got 1000000"),
        ({"noise_std": -1.0}, "`noise_std` must not be negative, got -1.0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive, got 0.0"),
        ({"ema": 1.0}, r"`ema` must lie in \[0, 1\), got 1.0"),
        ({"warmup": 1.5}, r"`warmup` is a fraction .* got 1.5"),
        ({"optimizer": "sgd"}, "`optimizer` must be one of 'adamw', 'soap', 'muon', got 'sgd'"),
        ({"optimizer": "soap", "precondition_every": 0}, "`precondition_every` must be at least 1, got 0"),
        ({"optimizer": "muon", "precondition_every": 5}, "`precondition_every` is 5, but only `optimizer` 'soap' has"),
        ({"schedule": "linear"}, "`schedule` must be one of 'cosine', 'one-cycle', 'constant', got 'linear'"),
        ({"normalisation": "max"}, "`normalisation` must be one of .* got 'max'"),
        ({"monitor": "loss"}, "`monitor` must be one of .* got 'loss'"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_options_are_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        TrainOptions(**change)


def test_recipes_are_what_the_contracts_say() -> None:
    paper = recipe("paper", n_dims=1, dataset="ks")
    assert (paper.epochs, paper.batch_size, paper.learning_rate, paper.weight_decay) == (500, 32, 1e-3, 1e-4)
    assert (paper.schedule, paper.normalisation, paper.noise_std, paper.predict_increment) == (
        "cosine",
        "minmax",
        1e-3,
        False,
    )
    assert recipe("paper", n_dims=2).batch_size == 8
    assert recipe("paper", dataset="burgers").noise_std == 5e-3
    assert recipe("fast", epochs=3).epochs == 3
    names = ("ks", "burgers", "torus-vis", "ks-attractor", "")
    assert [recipe("fast", dataset=name).noise_std for name in names] == [1e-3, 3e-2, 3e-2, 1e-2, 1e-3]


def test_a_model_that_learns_less_with_soap_is_trained_with_adamw(waves, valid_waves) -> None:
    def optimiser(run: Run) -> tuple[str, float]:
        return run.train.optimizer, run.train.learning_rate

    assert optimiser(resolve_run({})) == ("soap", 1e-2)
    assert optimiser(resolve_run({"model.model": "fno"})) == ("adamw", 3e-3)
    assert optimiser(resolve_run({"model.model": "fno", "train.optimizer": "soap"}))[0] == "soap"
    assert optimiser(resolve_run({"model.model": "fno"}, recipe="paper")) == ("adamw", 1e-3)
    assert task_for(model_config("gkt:tiny"), waves, valid=valid_waves, epochs=1).options.optimizer == "adamw"
    assert recipe("paper").optimizer == recipe("fast", dataset="kt-foil").optimizer == "adamw"


def test_of_several_processes_each_has_the_batch_of_one_and_the_paper_keeps_its_own(monkeypatch, waves) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert [recipe(name).batch_size for name in ("fast", "paper")] == [12, 32]
    assert recipe("fast", dataset="kt-foil").batch_size == 12
    assert recipe("fast", batch_size=5).batch_size == 5
    assert Run().completed(waves, recipe="fast").train.batch_size == 12


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_recipes_are_refused() -> None:
    with pytest.raises(ValueError, match="`recipe` must be one of 'fast', 'paper', got 'slow'"):
        recipe("slow")


def test_unknown_options_are_refused_by_name(waves) -> None:
    with pytest.raises(TypeError, match="`train` has no option `epoch`. Did you mean `epochs`"):
        train(SSNOConfig.tiny(), waves, epoch=3)


def test_a_description_is_completed_by_the_recipe_as_on_the_command_line(tmp_path, waves, valid_waves) -> None:
    settings = {"valid": valid_waves, "epochs": 1, "reporter": Silent()}
    ours = train(SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)), waves, **settings).model.config
    assert (ours.boundary, ours.coordinates, ours.modes.initialisation) == ("periodic", False, "grid")
    assert ours.hidden_channels == SSNOConfig.tiny().hidden_channels
    paper = train(SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)), waves, recipe="paper", **settings).model.config
    assert (paper.boundary, paper.coordinates) == ("zero", True)
    kept = train(SSNOConfig.tiny(boundary="periodic-truncated"), waves, **settings).model.config
    assert kept.boundary == "periodic-truncated"
    again = train(SSNOConfig.tiny(), waves, **settings), train(SSNOConfig.tiny(), waves, **settings)
    frames = valid_waves.read([0]).state[:, :4]
    assert torch.equal(*(rollout(forecaster, frames, 2) for forecaster in again))  # weights follow from the seed


def test_known_fields_are_aligned_as_is_usual_for_the_dataset(waves_with_context) -> None:
    forced = replace(waves_with_context, name="torus-vis")
    settings = {"epochs": 1, "reporter": Silent()}
    assert train(SSNOConfig.tiny(), forced, **settings).context_time == "target"
    assert train(SSNOConfig.tiny(), waves_with_context, **settings).context_time == "input"
    assert train(SSNOConfig.tiny(), forced, context_time="input", **settings).context_time == "input"


def test_a_run_says_everything_and_data_are_needed_otherwise(waves) -> None:
    with pytest.raises(ValueError, match="When training from a `Run`, pass no other options"):
        train(Run(), waves)
    with pytest.raises(TypeError, match="`data` must be `Trajectories` to train on, got NoneType"):
        train(tiny())


def test_training_never_rewrites_the_users_description(waves, valid_waves) -> None:
    model = tiny()
    config = model.config
    forecaster = train(model, waves, valid=valid_waves, epochs=1, reporter=Silent())
    assert model.config is config
    assert forecaster.spacing == waves.spacing


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_dims": 2}, "n_dims = 2, but the grid of 'waves' has the axes x. Build it with `n_dims=1`"),
        ({"in_channels": 3}, "in_channels = 3, but 'waves' has the fields u. Build it with `in_channels=1`"),
        ({"out_channels": 2}, "out_channels = 2, but 'waves' predicts u"),
    ],
)
def test_models_that_do_not_fit_the_data_are_refused(tmp_path, waves, fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        train(tiny(**fields), waves, folder=tmp_path / "run", reporter=Silent())
    assert not (tmp_path / "run").exists()


def test_trajectories_that_are_too_short_are_refused(tmp_path, waves) -> None:
    with pytest.raises(ValueError, match="needs trajectories of at least 5 frames, these have 3"):
        train(tiny(), waves.select(time_index=range(3)), folder=tmp_path / "run", reporter=Silent())
    assert not (tmp_path / "run").exists()


def test_one_trajectory_cannot_be_held_out(waves) -> None:
    with pytest.raises(ValueError, match="has 1 trajectories, too few to hold one out. Give `valid`"):
        train(tiny(), waves.select(indices=[0]), reporter=Silent())
