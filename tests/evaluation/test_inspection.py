"""What inspection says of modes whose lengths are known in closed form, and of every model."""

import json
import math

import numpy as np
import pytest
import torch

from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.evaluation.inspection import MEMORY, ONE_FOLD, SamplingGrid, compare_systems, inspect_run, reach, systems_of
from ssno.layers.memory import MemoryOptions, S4DBlock
from ssno.models.registry import model_config
from ssno.runs.log import Silent
from ssno.runs.open import open_run
from ssno.training.train import train

LINE = SamplingGrid(points=(4000,), spacing=(0.01,), names=("x",), time_step=0.5)


def with_one_mode(damping: float, frequency: float, step: float) -> torch.nn.Module:
    """A model whose spatial scans all have the kernel 2 exp(-damping step l) cos(frequency step l)."""
    model = model_config("ssno:tiny", hidden_channels=2, d_state=2, memory=MemoryOptions(0, d_state=8)).build().double()
    for block in (part for part in model.modules() if isinstance(part, S4DBlock)):
        block.modes.log_damping.data.fill_(math.log(damping))
        block.modes.frequency.data.fill_(frequency)
        block.modes.log_step.data.fill_(math.log(step))
        for weight in (block.modes.input_weight, block.modes.output_weight):
            weight.data.copy_(torch.tensor([1.0, 0.0]).expand_as(weight))
    return model


def test_a_damped_mode_falls_by_1_over_e_over_spacing_over_damping_times_step() -> None:
    for system in systems_of(with_one_mode(0.5, 0.0, 0.02), LINE):
        torch.testing.assert_close(system.decay_lengths, torch.full((2, 1), 1.0, dtype=torch.float64))
        assert system.wavelengths.isinf().all()
        torch.testing.assert_close(system.reach(ONE_FOLD), torch.ones(2, dtype=torch.float64), rtol=1e-4, atol=0)
        three = torch.full((2,), math.log(20), dtype=torch.float64)
        torch.testing.assert_close(system.reach(0.95), three, rtol=1e-4, atol=0)


def test_an_oscillating_mode_has_its_wavelength() -> None:
    system = systems_of(with_one_mode(0.5, 4 * math.pi, 0.02), LINE)[0]
    torch.testing.assert_close(system.wavelengths, torch.full((2, 1), 0.25, dtype=torch.float64))
    torch.testing.assert_close(system.positions[-1].item(), 39.99)


def test_physical_lengths_follow_the_spacing() -> None:
    model = with_one_mode(0.5, 1.0, 0.02)
    coarse = SamplingGrid(points=(4000,), spacing=(0.03,), names=("x",))
    for near, far in zip(systems_of(model, LINE), systems_of(model, coarse), strict=True):
        torch.testing.assert_close(far.reach(0.9), 3 * near.reach(0.9))
        torch.testing.assert_close(far.decay_lengths, 3 * near.decay_lengths)


def test_reach_of_kernels_known_by_heart() -> None:
    kernel = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(reach(kernel, 0.5, unit=2.0), torch.tensor([4.0, 5.0, 0.0], dtype=torch.float64))
    with pytest.raises(ValueError, match="`fraction` must be between 0 and 1, got 1"):
        reach(kernel, 1.0)


def test_undamped_modes_never_decay_and_json_says_null() -> None:
    model = model_config("ssno:tiny", memory=MemoryOptions(0, d_state=8)).build()
    for block in (part for part in model.modules() if isinstance(part, S4DBlock)):
        block.modes.log_damping.data.fill_(-math.inf)
    systems = systems_of(model, SamplingGrid(points=(16,), spacing=(1.0,), names=("x",)))
    row = compare_systems(systems, systems)[0]
    assert (row["decay_length"], row["damping_change"], row["damping"]) == (None, None, 0.0)
    json.dumps(row, allow_nan=False)


def test_a_flattened_sweep_walks_lines_whose_step_is_the_fastest_axis() -> None:
    model = model_config("ssno-vm:tiny", n_dims=2, memory=MemoryOptions(0, d_state=8)).build()
    systems = systems_of(model, SamplingGrid(points=(4, 6), spacing=(0.5, 2.0), names=("x", "y")))
    assert [(s.axis, s.unit) for s in systems[:4]] == [("y line", 2.0)] * 2 + [("x line", 0.5)] * 2
    assert systems[0].kernel.shape[1] == 24


def test_shapes_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="`points`, `spacing` and `names` must have one entry per grid axis"):
        SamplingGrid(points=(4,), spacing=(1.0, 1.0), names=("x",))
    systems = systems_of(with_one_mode(0.5, 0.0, 0.02), LINE)
    with pytest.raises(ValueError, match="`initial` must match `systems` one by one, got 1 for 4"):
        compare_systems(systems, systems[:1])


def run_of(name: str, folder, *, n_dims: int = 1, **fields):
    array = np.random.default_rng(0).normal(size=(4, 6, 1, *(16,) * n_dims)).astype(np.float32)
    data = Trajectories.from_array(array, lengths=[8.0] * n_dims, dt=0.25)
    torch.manual_seed(7)
    model = model_config(f"{name}:tiny", n_dims=n_dims, **fields).build()
    settings = {
        "epochs": 1,
        "batch_size": 3,
        "optimizer": "adamw",
        "learning_rate": 3e-3,
    }
    train(model, data, folder=folder, seed=7, reporter=Silent(), **settings)
    return open_run(folder)


@pytest.mark.parametrize("name", ["ssno", "ssno-uni", "ssno-vm", "ssno-ff"])
def test_every_state_space_model_shows_its_layers_beside_their_start(name, tmp_path) -> None:
    found = inspect_run(run_of(name, tmp_path / "run", n_dims=2))
    layers = {system.layer for system in found.systems}
    assert layers == {"1", "2", MEMORY}
    axes = ["y line", "x line", "time"] if name == "ssno-vm" else ["x", "y", "time"]
    assert found.axes() == axes
    for row in found.rows():
        assert row["initial_damping"] == pytest.approx(0.5)
        assert row["damping"] != row["initial_damping"]
        assert 0 < row["reach_63"] < row["reach_95"]
    now, before = found.along("time")
    assert (now[0].unit, now[0].kernel.shape[1]) == (0.25, 4)
    torch.testing.assert_close(now[0].shares.sum(1), torch.ones(16, dtype=torch.float64))
    # The start is that of the seed: training moved the steps a little, another seed would have moved them a lot.
    assert (now[0].step / before[0].step).log().abs().max() < 0.1


@pytest.mark.parametrize(("name", "fields"), [("fno", {}), ("ffno", {"memory": MemoryOptions(kernel="s4")})])
def test_a_baseline_shows_its_memory(name, fields, tmp_path) -> None:
    found = inspect_run(run_of(name, tmp_path / "run", **fields))
    assert found.axes() == ["time"]
    assert "no state-space layers in space" in found.notes[0]


def test_a_model_with_nothing_to_show_says_so(tmp_path, capsys) -> None:
    run_of("gkt", tmp_path / "run")
    main(["inspect", str(tmp_path / "run")])
    out = capsys.readouterr().out
    assert "'gkt' has neither state-space layers nor a memory" in " ".join(out.split())
    assert not (tmp_path / "run" / "inspect").exists()


def test_the_command_prints_numbers_and_draws(tmp_path, capsys) -> None:
    run_of("ssno", tmp_path / "run")
    main(["inspect", str(tmp_path / "run")])
    out = capsys.readouterr().out
    assert "memory: weight of the last 4 frames" in out
    assert "x →" in out
    names = {path.name for path in (tmp_path / "run" / "inspect").iterdir()}
    assert names == {"modes-x.png", "kernels-x.png", "memory.png"}
    main(["inspect", str(tmp_path / "run" / "last"), "--no-draw", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert len(listed["systems"]) == 5
    assert listed["systems"][0]["positions"][1] == 0.5
    main(["inspect", str(tmp_path / "run"), "--out", str(tmp_path / "elsewhere"), "--json"])
    assert len(json.loads(capsys.readouterr().out)["pictures"]) == len(list((tmp_path / "elsewhere").iterdir())) == 3


def test_a_run_whose_data_are_gone_falls_back_on_its_config(tmp_path) -> None:
    run = run_of("ssno", tmp_path / "run")
    document = json.loads((tmp_path / "run" / "config.json").read_text())
    document["run"] = {"data": {"name": "gone"}, "model": document["config"], "train": {}}
    recorded = document.pop("data")
    (tmp_path / "run" / "config.json").write_text(json.dumps(document))
    found = inspect_run(open_run(tmp_path / "run"))
    assert "The data of the run were not found: kernels are drawn on 128 points" in found.notes[0]
    assert "The seed of the run is not recorded" in found.notes[1]
    assert found.systems[0].unit == run.forecaster.spacing[0]
    (tmp_path / "run" / "config.json").write_text(json.dumps({**document, "data": recorded}))
    assert "The seed of the run is not recorded" in inspect_run(open_run(tmp_path / "run")).notes[0]


def test_frames_at_unequal_times_make_the_memory_count_in_frames(tmp_path, monkeypatch) -> None:
    run = run_of("ssno", tmp_path / "run")
    array = np.zeros((2, 6, 1, 16), np.float32)
    uneven = Trajectories.from_array(array, times=np.array([0.0, 1, 2, 4, 8, 16]), lengths=[8.0])
    monkeypatch.setattr(type(run), "load", lambda self, split: uneven)
    found = inspect_run(run)
    assert "Frames are not equally spaced in time" in found.notes[0]
    assert found.along("time")[0][0].unit == 1.0
