"""`predict`: forecasts of any length into a file that every reader understands."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from ssno.base.memory import peak_memory
from ssno.cli.main import main
from ssno.cli.options import warn_of_other_grid
from ssno.data.envelope import Surveyor
from ssno.data.errors import DataError
from ssno.data.load import DataOptions, load_dataset, same_options
from ssno.data.normalise import fit
from ssno.data.readers.inspection import inspect_data
from ssno.data.readers.registry import ReadOptions
from ssno.data.storage import FrameWriter, Layout
from ssno.data.trajectories import Trajectories
from ssno.data.units import PhysicalUnits
from ssno.data.windows import Window
from ssno.forecasting.divergence import Divergence, ForecastDiverged
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.predict import plan_prediction, predict
from ssno.forecasting.rollout import rollout
from ssno.models.baselines.trivial import LinearConfig
from ssno.models.ssno import SSNOConfig
from ssno.pde.geometry import SPHERE, Axis
from ssno.runs.open import RunFolder


def waves(count: int = 3, frames: int = 6, *, context: str = "none", points: int = 16) -> Trajectories:
    rng = np.random.default_rng(0)
    state = rng.normal(size=(count, frames, 1, points))
    if context == "none":
        return Trajectories.from_array(state.astype(np.float32), dt=0.5, lengths=[2.0], name="waves")
    known = rng.normal(size=(count, frames, 1, points))
    return Trajectories.from_array(
        np.concatenate([state, known], 2).astype(np.float32),
        fields=["u", "force"],
        context_fields=["force"],
        dt=0.5,
        lengths=[2.0],
        name="forced",
    )


def model_for(data: Trajectories, **options) -> Forecaster:
    torch.manual_seed(0)
    channels = len(data.fields) + len(data.context_fields)
    model = SSNOConfig.tiny(in_channels=channels, hidden_channels=4).build()
    settings = {"normalisers": fit(data, "zscore"), "window": Window(size=4), "spacing": data.spacing}
    return Forecaster(model, **(settings | options)).eval()


def test_the_file_holds_the_rollout_and_reads_like_a_dataset(tmp_path) -> None:
    data = waves(5)
    forecaster = model_for(data)
    done = predict(forecaster, data, tmp_path / "next.h5", steps=40, batch_size=2)
    read = load_dataset(tmp_path / "next.h5", "all")
    expected = rollout(forecaster, data.read(slice(None)).state[:, -4:], 40)
    torch.testing.assert_close(read.read(slice(None)).state, expected, atol=1e-6, rtol=1e-6)
    assert (read.name, read.fields, read.axes) == ("waves-forecast", data.fields, data.axes)
    np.testing.assert_allclose(read.times, 2.5 + 0.5 * np.arange(1, 41))
    assert (done.trajectories, done.divergences, done.times) == (5, (), (3.0, 22.5))
    found, _ = inspect_data(tmp_path / "next.h5", ReadOptions())
    assert (found.format, found.frames, found.sets[0].not_finite) == ("The Well / ssno", 40, ())
    assert [path.name for path in tmp_path.iterdir()] == ["next.h5"]


def test_a_forecast_can_be_continued_from_its_file(tmp_path) -> None:
    data = waves()
    forecaster = model_for(data)
    predict(forecaster, data, tmp_path / "whole.h5", steps=12)
    predict(forecaster, data, tmp_path / "first.h5", steps=6)
    predict(forecaster, load_dataset(tmp_path / "first.h5", "all"), tmp_path / "second.h5", steps=6)
    whole, second = (load_dataset(tmp_path / f"{name}.h5", "all") for name in ("whole", "second"))
    torch.testing.assert_close(second.read(slice(None)).state, whole.read(slice(None)).state[:, 6:])
    np.testing.assert_allclose(second.times, whole.times[6:])
    assert second.name == "waves-forecast"


@pytest.mark.parametrize("context_time", ["input", "target"])
def test_known_fields_are_used_after_the_given_frames_and_kept(tmp_path, context_time) -> None:
    data = waves(context="varying")
    forecaster = model_for(data, context_time=context_time)
    predict(forecaster, data, tmp_path / "next.h5", steps=2, input_frames=4)
    state, context = data.read(slice(None))
    read = load_dataset(tmp_path / "next.h5", "all")
    torch.testing.assert_close(read.read([0, 1, 2]).state, rollout(forecaster, state[:, :4], 2, context=context))
    torch.testing.assert_close(read.read([0, 1, 2]).context, context[:, 4:])


def test_constant_known_fields_last_for_ever(tmp_path) -> None:
    data = waves(context="varying")
    with FrameWriter(tmp_path / "now.h5", layout_of(data, frames=4), count=3, constant_context=True) as file:
        state, context = (values.numpy() for values in data.read(slice(None)))
        file.write(0, 0, state[:, :4], context[:, :1])
    now = load_dataset(tmp_path / "now.h5", "all")
    forecaster = model_for(data)
    predict(forecaster, now, tmp_path / "next.h5", steps=40)
    known = torch.from_numpy(context[:, :1]).expand(-1, 44, -1, -1)
    expected = rollout(forecaster, torch.from_numpy(state[:, :4]), 40, context=known)
    read = load_dataset(tmp_path / "next.h5", "all")
    torch.testing.assert_close(read.read(slice(None)).state, expected)
    torch.testing.assert_close(read.read(slice(None)).context, known[:, 4:])


def test_forecasts_keep_the_kind_of_grid_and_the_units(tmp_path) -> None:
    data = replace(waves(), geometry=SPHERE, units=PhysicalUnits({"u": "m s-1"}, {"x": "m"}, "s"))
    predict(model_for(data), data, tmp_path / "next.h5", steps=2)
    forecast = load_dataset(tmp_path / "next.h5", "all")
    assert (forecast.geometry, forecast.units) == (SPHERE, data.units)


def with_holes(moves_from: int, *, empty_from: int = 6) -> Trajectories:
    """Waves with a missing point, which goes on from some frame, until nothing is known any more."""
    state = np.random.default_rng(0).normal(size=(3, 6, 1, 16)).astype(np.float32)
    for frame in range(6):
        state[:, frame, 0, 5 + max(0, frame - moves_from)] = np.nan
    state[:, empty_from:] = np.nan
    return Trajectories.from_array(state, dt=0.5, lengths=[2.0]).masked("nan")


@pytest.mark.parametrize("moves_from", [0, 3])
def test_a_mask_of_missing_values_moves_in_forecasts_as_in_the_data(tmp_path, moves_from) -> None:
    data = with_holes(moves_from)
    model = model_for(data, mask="mask")
    predict(model, data, tmp_path / "next.h5", steps=2, input_frames=4)
    found, wanted = load_dataset(tmp_path / "next.h5", "all").read(slice(None)), data.read(slice(None))
    np.testing.assert_array_equal(found.context, wanted.context[:, 4:])
    assert (found.state[found.context[:, :, :1] > 0] == 0).all()
    with pytest.raises(DataError, match=r"has its context fields \('mask',\) for 2 steps after the 4 input frames"):
        plan_prediction(model, data, steps=3, input_frames=4)


@pytest.mark.parametrize("empty_from", [4, 6])
def test_a_mask_of_missing_values_that_stands_still_lasts_for_ever(tmp_path, empty_from) -> None:
    data = with_holes(6, empty_from=empty_from)
    predict(model_for(data, mask="mask"), data, tmp_path / "next.h5", steps=9, input_frames=4)
    known = load_dataset(tmp_path / "next.h5", "all").read(slice(None)).context
    np.testing.assert_array_equal(known, data.read(slice(None)).context[:, :1].expand(-1, 9, -1, -1))


def layout_of(data: Trajectories, *, frames: int) -> Layout:
    return Layout(
        name="now",
        fields=data.fields,
        axes=data.axes,
        times=data.times[:frames],
        context_fields=data.context_fields,
    )


def test_another_resolution_goes_in_with_its_spacing(tmp_path) -> None:
    forecaster, finer = model_for(waves()), waves(points=32)
    predict(forecaster, finer, tmp_path / "next.h5", steps=3)
    expected = rollout(forecaster, finer.read(slice(None)).state[:, -4:], 3, spacing=finer.spacing)
    torch.testing.assert_close(load_dataset(tmp_path / "next.h5", "all").read(slice(None)).state, expected)
    other = rollout(forecaster, finer.read(slice(None)).state[:, -4:], 3)
    assert not torch.allclose(expected, other, atol=1e-3)


def test_memory_does_not_grow_with_the_horizon(tmp_path) -> None:
    data = waves()
    settings = {"normalisers": fit(data, "zscore"), "window": Window(size=2)}
    forecaster = Forecaster(LinearConfig().build(), **settings)  # cheap to follow; learned models: test_streaming

    def peak(steps: int) -> int:
        return peak_memory(lambda: predict(forecaster, data, tmp_path / f"{steps}.h5", steps=steps))

    assert peak(500) == peak(50)


@pytest.mark.verify
def test_the_memory_of_the_process_does_not_grow_with_the_horizon(tmp_path) -> None:
    data = waves(8, points=4096)
    run_folder(tmp_path, model_for(data))
    np.save(tmp_path / "now.npy", data.read(slice(None)).state.numpy())
    program = (
        "import resource, sys; from ssno.cli.main import main; main(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak(steps: int) -> int:
        words = ["predict", "run", "--input", "now.npy", "--output", f"{steps}.h5", "--steps", str(steps), "--dt", "1"]
        words += ["--axes", "batch time channel x", "--lengths", "2"]
        out = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, check=True, capture_output=True)
        return int(out.stdout.split()[-1])

    short, long = peak(50), peak(500)
    assert load_dataset(tmp_path / "500.h5", "all").shape == (8, 500, 1, 4096)
    assert long - short < 10 * 1024  # kilobytes; the 450 more steps are 56 megabytes


def run_folder(folder, forecaster: Forecaster):
    forecaster.save(folder / "run")
    return folder / "run"


def exploding(data: Trajectories) -> Forecaster:
    """Every step multiplies the field by a thousand."""

    class Thousand(torch.nn.Module):
        def forward(self, frames, *, spacing=None):
            return 1000 * frames

    return Forecaster(Thousand(), normalisers=fit(data, "none"), window=Window(size=1))


def one_that_explodes() -> Trajectories:
    return Trajectories.from_array(np.array([1.0, 0.0], np.float32)[:, None, None, None] * np.ones((2, 2, 1, 8)))


def test_a_forecast_that_explodes_is_kept_if_asked_for_and_its_first_bad_steps_are_reported(tmp_path) -> None:
    data = one_that_explodes()
    done = predict(exploding(data), data, tmp_path / "next.h5", steps=20, on_divergence="continue")
    assert done.divergences == (Divergence(0, 0, "too large"), Divergence(0, 12, "not finite"))
    frames = load_dataset(tmp_path / "next.h5", "all").read(slice(None), finite=False).state
    assert frames[0, :12].isfinite().all()
    assert not frames[0, 12:].isfinite().any()
    assert frames[1].isfinite().all()


def test_the_input_is_never_overwritten(tmp_path) -> None:
    predict(model_for(waves()), waves(), tmp_path / "a.h5", steps=6)
    data, before = load_dataset(tmp_path / "a.h5", "all"), (tmp_path / "a.h5").read_bytes()
    (tmp_path / "link.h5").symlink_to(tmp_path / "a.h5")
    for name in ("a.h5", "link.h5"):
        with pytest.raises(FileExistsError, match="has the data to start from, so it is never replaced"):
            predict(model_for(waves()), data, tmp_path / name, steps=6, overwrite=True)
    assert (tmp_path / "a.h5").read_bytes() == before


def growing(data: Trajectories, factor: float) -> Forecaster:
    class Grow(torch.nn.Module):
        def forward(self, frames, *, spacing=None):
            return factor * frames

    return Forecaster(Grow(), normalisers=fit(data, "none"), window=Window(size=1))


@pytest.mark.parametrize("batch_size", [1, 2])
def test_by_default_the_file_ends_before_the_first_trajectory_runs_away_and_says_so(tmp_path, batch_size) -> None:
    data = Trajectories.from_array(np.array([0.0, 1.0, 2.0])[:, None, None, None] * np.ones((3, 2, 1, 8)), dt=0.5)
    done = predict(growing(data, 1.1), data, tmp_path / "next.h5", steps=200, batch_size=batch_size)
    bad = 24  # 1.1^25 > 10
    assert (done.steps, done.steps_asked, done.divergences[0]) == (bad, 200, Divergence(1, bad, "too large"))
    assert done.times == (1.0, 0.5 + 0.5 * bad)
    read = load_dataset(tmp_path / "next.h5", "all")
    assert read.shape == (3, bad, 1, 8)
    assert len(read.times) == bad
    frames = read.read(slice(None)).state
    torch.testing.assert_close(frames[1:, :, 0, 0], torch.tensor([[1.0], [2.0]]) * 1.1 ** torch.arange(1, bad + 1))
    with h5py.File(tmp_path / "next.h5") as file:
        told = file.attrs["divergence"].splitlines()
        assert told[0] == "trajectory 1 diverges: more than 10 times larger than the data from step 25 on"
        assert file.attrs["steps_asked"] == 200


def test_known_fields_end_with_a_forecast_that_is_stopped(tmp_path) -> None:
    state = np.ones((1, 60, 2, 8), np.float32)
    data = Trajectories.from_array(state, fields=["u", "force"], context_fields=["force"])

    class Grow(torch.nn.Module):
        def forward(self, frames, *, spacing=None):
            return 1.5 * frames[:, :, :1]

    forecaster = Forecaster(Grow(), normalisers=fit(data, "none"), window=Window(size=1))
    done = predict(forecaster, data, tmp_path / "next.h5", steps=50, input_frames=3)
    read = load_dataset(tmp_path / "next.h5", "all").read(slice(None))
    assert done.steps == read.state.shape[1] == read.context.shape[1] == 5  # 1.5^6 > 10


def test_a_forecast_without_one_good_frame_leaves_no_file(tmp_path) -> None:
    data = one_that_explodes()
    with pytest.raises(
        ForecastDiverged, match="trajectory 0 diverges: more than 10 times .* from step 1 on. No step before"
    ):
        predict(exploding(data), data, tmp_path / "next.h5", steps=20)
    assert list(tmp_path.iterdir()) == []


def test_the_file_says_what_left_the_training_data(tmp_path) -> None:
    data = waves(frames=12)
    surveyor = Surveyor(data)
    surveyor.look_at(data.read(slice(None)))
    forecaster = growing(data, 1.1)
    forecaster.envelope = surveyor.envelope
    done = predict(forecaster, data, tmp_path / "next.h5", steps=15)
    with h5py.File(tmp_path / "next.h5") as file:
        assert (file.attrs["steps_asked"], file.attrs["trained_steps"]) == (15, 11)
        told = file.attrs["outside_training"].splitlines()
    assert told == [departure.words() for departure in done.departures]
    assert (done.steps, done.trained_steps, done.recorded) == (15, 11, True)
    assert "leaves the range of the training data at step" in told[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "`steps` must be at least 1, got 0"),
        ({"input_frames": 7}, "`input_frames` must be from 1 to the 6 frames of 'waves', got 7"),
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
        ({"on_divergence": "panic"}, r"`on_divergence` must be one of 'stop', 'continue', got 'panic'"),
    ],
)
def test_mistakes_are_named(tmp_path, options, message, as_users_call_it) -> None:
    data = waves()
    with pytest.raises(ValueError, match=message):
        predict(model_for(data), data, tmp_path / "next.h5", **({"steps": 2} | options))
    assert list(tmp_path.iterdir()) == []


def test_data_that_do_not_fit_are_refused_before_anything_is_written(tmp_path) -> None:
    data, forced = waves(), waves(context="varying")
    with pytest.raises(
        DataError,
        match=r"'forced' has the context fields \('force',\), but the model was trained with \(\).*--context none",
    ):
        plan_prediction(model_for(data), forced, steps=1)
    with pytest.raises(DataError, match=r"for 2 steps after the 4 input frames, but 3 are to be predicted"):
        plan_prediction(model_for(forced), forced, steps=3, input_frames=4)
    one = data.select(time_index=[0])
    with pytest.raises(DataError, match="has one frame, so the time between frames is unknown. Pass `time_step`"):
        plan_prediction(model_for(data), one, steps=1)
    assert plan_prediction(model_for(data), one, steps=2, time_step=0.25).times.tolist() == [0.25, 0.5]
    for step in (float("nan"), float("inf"), 0.0, -1.0):
        with pytest.raises(ValueError, match="`time_step` must be positive and finite, got"):
            plan_prediction(model_for(data), data, steps=2, time_step=step)
    (tmp_path / "next.h5").write_text("precious")
    with pytest.raises(FileExistsError, match="exists already. Choose another name, or overwrite it"):
        predict(model_for(data), data, tmp_path / "next.h5", steps=1)
    assert (tmp_path / "next.h5").read_text() == "precious"


def test_a_forecast_that_fails_half_way_leaves_nothing(tmp_path) -> None:
    data = waves()

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(model_for(data), data, tmp_path / "next.h5", steps=3, report=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_refuses_what_it_was_not_declared_for(tmp_path) -> None:
    layout = Layout(name="w", fields=("u",), axes=(Axis("x", 1.0, 4),), times=np.arange(3.0))
    with pytest.raises(ValueError, match="`count` must be at least 1, got 0"):
        FrameWriter(tmp_path / "a.h5", layout, count=0)
    message = "`state` ends at trajectory 2 and frame 4, but the file was declared with 2"
    with FrameWriter(tmp_path / "b.h5", layout, count=2) as writer, pytest.raises(ValueError, match=message):
        writer.write(1, 2, np.zeros((1, 2, 1, 4), np.float32))


def test_the_command_forecasts_inspects_and_says_what_it_would_cost(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    data = waves()
    run_folder(tmp_path, model_for(data))
    np.save("now.npy", data.read(slice(None)).state.numpy())
    words = ["predict", "run", "--input", "now.npy", "--output", "out/next.h5", "--steps", "5"]
    words += ["--axes", "batch time channel x", "--dt", "0.5", "--lengths", "2", "--trajectories", "2", "0"]
    main([*words, "--dry-run", "--json"])
    cost = json.loads(capsys.readouterr().out)
    assert (cost["trajectories"], cost["steps"], cost["last_time"]) == (2, 5, 5.0)
    assert cost["disk_bytes"] == 2 * 5 * 16 * 4
    assert not (tmp_path / "out").exists()
    main([*words, "--dry-run"])
    assert "dry run: estimated cost" in capsys.readouterr().out
    main(words)
    assert "2 trajectories, 5 steps, time 3 to 5" in capsys.readouterr().out
    expected = rollout(model_for(data), data.read([2, 0]).state[:, -4:], 5)
    torch.testing.assert_close(load_dataset("out/next.h5", "all").read(slice(None)).state, expected)
    main(
        [
            *words,
            "--overwrite",
            "--json",
            "--batch-size",
            "1",
            "--input-frames",
            "4",
            "--resolution",
            "8",
            "--time-index",
            "::1",
        ]
    )
    assert json.loads(capsys.readouterr().out)["times"] == [2.0, 4.0]
    with h5py.File("out/next.h5", "a") as file:
        file["dimensions/time"].attrs["units"] = "s"
    main(["predict", "run", "--input", "out/next.h5", "--output", "later.h5", "--steps", "2"])
    assert "2 steps, time 4.5 to 5 s, in" in capsys.readouterr().out


def obstacle_file(path: Path, *, nan: bool = False, points: int = 12) -> Path:
    """Runs as users store them: time last, own names for times and places, a parameter, an obstacle."""
    rng = np.random.default_rng(0)
    state, solid = rng.normal(size=(10, points, 8, 6)), np.zeros((points, 8), np.uint8)
    solid[2:4, 3:5] = 1
    if nan:
        state[:, solid > 0] = np.nan
    with h5py.File(path, "w") as file:
        file["temperature"], file["solid"], file["feed"] = state.astype(np.float32), solid, rng.uniform(size=10)
        file["clock_s"], file["across_m"] = 0.5 * np.arange(6), np.arange(points) / points
        file["height_m"] = (np.arange(8) + 0.5) / 4
    return path


@pytest.mark.parametrize("mask", ["solid", "nan"])
def test_the_command_reads_its_input_as_the_run_read_its_data(tmp_path, monkeypatch, capsys, mask) -> None:
    monkeypatch.chdir(tmp_path)
    obstacle_file(tmp_path / "mine.h5", nan=mask == "nan")
    obstacle_file(tmp_path / "now.h5", nan=mask == "nan")
    once = ["--axes", "batch x y time", "--arrays", "temperature", "--times", "clock_s", "--context", "feed"]
    once += ["--mask", mask, "--coordinates", "across_m", "height_m", "--periodic", "x"]
    said = [f"--data.{word[2:]}" if word.startswith("--") else word for word in once]
    main(["train", "mine.h5", *said, "--model", "ssno:tiny", "--train.epochs", "1", "--name", "own"])
    asked = ["predict", "runs/own", "--steps", "4"]
    main([*asked, "--input", "now.h5", "--output", "again.h5", *once])
    capsys.readouterr()
    main([*asked, "--input", "now.h5", "--output", "next.h5"])
    assert "WARNING" not in capsys.readouterr().err
    again, found = (load_dataset(f"{name}.h5", "all") for name in ("again", "next"))
    assert torch.equal(found.read(slice(None)).state, again.read(slice(None)).state)
    assert (found.mask, found.axes) == (("solid" if mask == "solid" else "mask"), again.axes)
    assert [axis.periodic for axis in found.axes] == [True, False]
    assert (found.read(slice(None)).state[..., 2:4, 3:5] == 0).all()
    main([*asked, "--input", "next.h5", "--output", "later.h5"])  # which describes itself
    main(
        [*asked, "--input", "next.h5", "--output", "later.h5", "--overwrite", "--context", "feed", "--mask", found.mask]
    )
    assert load_dataset("later.h5", "all").times[0] == 0.5 * 10
    main(["evaluate", "runs/own", "--data", "now.h5", "--split", "valid"])
    main(["evaluate", "runs/own", "--split", "valid"])
    elsewhere, own = (
        json.loads((tmp_path / "runs" / "own" / f"{name}.json").read_text())
        for name in ("evaluation-now-valid", "evaluation-valid")
    )
    assert elsewhere["scores"]["means"] == own["scores"]["means"]


def test_a_viscosity_finds_generated_data_and_is_not_said_about_files(tmp_path) -> None:
    np.save(tmp_path / "mine.npy", np.zeros((2, 6, 8)))
    own, given = ReadOptions(viscosity=0.1, dt=0.5), ReadOptions(axes="batch time x")
    assert same_options(tmp_path / "mine.npy", own, given) == ReadOptions(axes="batch time x", dt=0.5)
    run = RunFolder(tmp_path, "run", model_for(waves()), {}, DataOptions(name="ks", viscosity=0.1, preset="tiny"))
    assert run.alike("ks") == DataOptions(name="ks", viscosity=0.1, preset="tiny")
    assert run.alike("burgers") == DataOptions(name="burgers")


def test_checkpoints_that_know_only_their_spacing_warn_of_another(tmp_path, capsys) -> None:
    data = waves()
    bundled = RunFolder(tmp_path, "waves-16", model_for(data), {}, None)
    warn_of_other_grid(bundled, [32], (1 / 8,))
    assert capsys.readouterr().err == ""
    warn_of_other_grid(bundled, [16], (1 / 16,))
    assert "points of these data are 0.0625 apart, those waves-16 was trained on 0.125" in capsys.readouterr().err


def test_inputs_with_another_step_or_grid_are_warned_of_and_options_given_anew_win(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    obstacle_file(tmp_path / "mine.h5")
    obstacle_file(tmp_path / "fine.h5", points=24)
    said = ["--data.axes", "batch x y time", "--data.arrays", "temperature", "--data.times", "clock_s"]
    said += ["--data.coordinates", "across_m", "height_m"]
    main(["train", "mine.h5", *said, "--model", "ssno:tiny", "--train.epochs", "1", "--name", "own"])
    main(
        [
            "predict",
            "runs/own",
            "--input",
            "fine.h5",
            "--output",
            "a.h5",
            "--dt",
            "1",
            "--lengths",
            "1",
            "2",
            "--steps",
            "3",
        ]
    )
    err = capsys.readouterr().err
    assert "WARNING: these data have 24 x 8 points, own was trained on 12 x 8." in err
    assert "WARNING: frames of these data are 1 apart, those own was trained on 0.5." in err
    assert load_dataset("a.h5", "all").time_step == 1.0
    main(["predict", "runs/own", "--input", "fine.h5", "--output", "b.h5", "--resolution", "12", "8", "--steps", "3"])
    assert "WARNING" not in capsys.readouterr().err


def prediction_of(forecaster: Forecaster, folder: Path) -> list[str]:
    """The command that predicts a hundred steps of waves."""
    run_folder(folder, forecaster)
    np.save(folder / "now.npy", waves(12).read(slice(None)).state.numpy())
    words = ["predict", "run", "--input", "now.npy", "--output", "next.h5", "--steps", "100", "--dt", "1"]
    return [*words, "--axes", "batch time channel x", "--lengths", "2"]


def test_diverged_forecasts_end_the_command_with_code_3(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    forecaster = model_for(waves(12), predict_increment=True)
    for parameter in forecaster.model.head.parameters():
        parameter.data.mul_(1e12)
    words = prediction_of(forecaster, tmp_path)
    with pytest.raises(SystemExit, match="3"):
        main(words)
    assert "No step before it is valid, so nothing was written." in capsys.readouterr().err
    assert not Path("next.h5").exists()
    with pytest.raises(SystemExit, match="3"):
        main([*words, "--on-divergence", "continue"])
    out = capsys.readouterr().out
    assert "! trajectory 0 diverges: more than 10 times larger than the data from step 1 on" in out
    assert "diverges: not finite from step" in out
    assert "more; --json lists them all" in out
    settings = {"normalisers": fit(waves(12), "zscore"), "window": Window(size=2)}
    words = prediction_of(Forecaster(LinearConfig().build(), **settings), tmp_path)  # a line
    with pytest.raises(SystemExit, match="3"):
        main([*words, "--overwrite"])
    out = capsys.readouterr().out
    assert "larger than the data from step" in out
    assert "not finite" not in out
    kept = len(load_dataset("next.h5", "all").times)
    assert f"Stopped: only the {kept} of 100 steps before are written" in out
    with pytest.raises(SystemExit, match="3"):
        main([*words, "--overwrite", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["steps"], told["steps_asked"], told["recorded"]) == (kept, 100, False)
    assert told["departures"][0]["field"] == "u"


def test_a_trained_run_says_before_it_starts_that_it_is_to_go_further_than_training(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("mine.npy", np.sin(np.arange(16) / 8 * np.pi + np.arange(200)[:, None] / 5).reshape(10, 20, 16))
    axes = ["--data.axes", "batch time x"]
    main(["train", "mine.npy", *axes, "--model", "ssno:tiny", "--train.epochs", "1", "--name", "own"])
    capsys.readouterr()
    words = ["predict", "runs/own", "--input", "mine.npy", "--output", "a.h5", "--on-divergence", "continue", "--json"]

    def told(*more: str) -> tuple[str, dict[str, object]]:
        with suppress(SystemExit):
            main([*words, *more, "--overwrite"])
        found = capsys.readouterr()
        return found.err, json.loads(found.out)

    err, result = told("--steps", "40")
    assert "own was trained on forecasts of 16 steps, you ask for 40." in err
    assert (result["trained_steps"], result["recorded"]) == (16, True)
    assert "trained on forecasts" not in told("--steps", "16")[0]
    config = json.loads(Path("runs/own/config.json").read_text())
    assert len(config["forecaster"].pop("envelope")["low"]) == 1
    Path("runs/own/config.json").write_text(json.dumps(config))  # as runs were before
    err, result = told("--steps", "40")
    assert "own was trained on forecasts of 16 steps, you ask for 40." in err
    assert (result["trained_steps"], result["recorded"]) == (16, False)
    config["forecaster"]["envelope"] = {"frames": 20, "length": 1.0} | {
        name: [1.0, 2.0] for name in ("low", "high", "mean_low", "mean_high", "drift")
    }
    config["forecaster"]["envelope"] |= {"energy_low": [[0.0], [0.0]], "energy_high": [[0.0], [0.0]]}
    Path("runs/own/config.json").write_text(json.dumps(config))
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "`envelope` needs one number per field ('u',), got 2." in capsys.readouterr().err
