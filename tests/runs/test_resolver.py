"""One way from options by name to a run, whoever names them."""

import numpy as np
import pytest

from ssno.cli.train import parse
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window
from ssno.models.registry import model_config
from ssno.models.ssno import SSNOConfig
from ssno.paper.sweep import RunSweep
from ssno.pde.geometry import Axis
from ssno.runs.run import DataShape, Run, resolve_run
from ssno.training.task import task_for

GRID = DataShape("mine", [Axis("x", 1.0, 16)], ["u", "v"], ["solid"])


def test_the_command_line_python_and_a_sweep_describe_the_same_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("noise.npy", np.random.default_rng(0).standard_normal((20, 8, 16), dtype=np.float32))
    chosen = {"data.name": "noise.npy", "data.axes": "batch time x", "model.model": "ssno:tiny", "model.d_state": 4}
    words = ["noise.npy", "--data.axes", "batch time x", "--model", "ssno:tiny", "--model.d-state", "4"]
    call = parse([*words, "--train.epochs", "2"])
    data = call.run().data.load("train")
    typed = call.run().completed(data, recipe=call.recipe, given=call.overrides)
    (swept,) = RunSweep({**chosen, "train.epochs": 2}).trials()
    assert swept.run == typed == resolve_run({**chosen, "train.epochs": 2}, data=lambda options: options.load("train"))
    built = task_for(SSNOConfig.tiny(d_state=4), data, epochs=2).forecaster.model.config
    assert built.d_state == typed.model.d_state == 4
    assert built.boundary == typed.model.boundary == "periodic"


def test_data_complete_what_nobody_names() -> None:
    run = resolve_run({"model.memory.window": 2}, data=GRID)
    assert (run.model.in_channels, run.model.out_channels, run.model.n_dims, run.window.size) == (3, 2, 1, 2)
    kept = resolve_run({"model.memory.window": 0, "window.size": 3, "train.batch_size": 5}, data=GRID)
    assert (kept.window.size, kept.train.batch_size) == (3, 5)  # Markovian: it begins later


@pytest.mark.parametrize(("model", "owner"), [("ssno", "memory.window"), ("gkt", "frames_as_channels")])
def test_a_window_that_contradicts_the_model_is_refused(model, owner) -> None:
    message = f"`window.size` is 3, but `model.{owner}` is 4: .* Leave `window.size` out"
    with pytest.raises(ValueError, match=message):
        resolve_run({"model.model": model, "window.size": 3}, data=GRID)
    with pytest.raises(ValueError, match=message):
        task_for(
            model_config(model), Trajectories.from_array(np.zeros((3, 8, 1, 16), np.float32)), window=Window(size=3)
        )


def test_a_base_decides_what_is_not_overridden() -> None:
    base = resolve_run({"train.epochs": 7, "model.d_state": 8}, recipe="paper")
    assert resolve_run({}, base=base) is base
    changed = resolve_run({"train.seed": 1}, recipe=None, base=base)
    assert (changed.train.seed, changed.train.epochs, changed.model) == (1, 7, base.model)
    assert resolve_run({"model.model": "ffno"}, base=base).model.name == "ffno"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"train.epoch": 3}, r"Unknown name `train.epoch`. Did you mean `train.epochs`"),
        ({"train.epochs.more": 3}, r"`train.epochs.more`: 'epochs' is a value, not a section"),
        ({"train.epochs": "many"}, r"`train.epochs` must be"),
        ({"model.model": "sno"}, r"Did you mean `ssno`"),
    ],
)
def test_wrong_names_and_values_are_refused(overrides, message) -> None:
    with pytest.raises(ValueError, match=message):
        resolve_run(overrides)


def test_trajectories_complete_a_run_as_their_shape_does() -> None:
    data = Trajectories.from_array(
        np.zeros((2, 6, 3, 16), np.float32), fields=["u", "v", "solid"], context_fields=["solid"]
    )
    assert resolve_run({}, data=data) == resolve_run({}, data=GRID) != Run()
