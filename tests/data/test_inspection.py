"""Looking into files: what is recognised, found wrong, and suggested."""

import io

import numpy as np
import pytest

from ssno.base.terminal import Console
from ssno.cli.data_inspect import show
from ssno.data.errors import DataError
from ssno.data.readers.inspection import duplicates, frame_hashes, frozen, inspect_data, leak, wall
from ssno.data.readers.registry import ReadOptions
from ssno.data.readers.suggest import suggest_axes
from ssno.data.trajectories import Trajectories


def hashes(values: np.ndarray) -> np.ndarray:
    return frame_hashes(Trajectories.from_array(values).read(slice(None), finite=False).state)


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_a_recognised_file_is_described_completely(tmp_path, public_files) -> None:
    path = tmp_path / "KS_train_nu0.1.h5"
    values = public_files.lpsda_ks(path, "train")
    found, sets = inspect_data(path)
    assert (found.format, found.container, found.name, found.frames) == ("LPSDA fork", "hdf5", "ks", 26)
    assert found.dt == pytest.approx(0.1)
    assert found.axes[0]["spacing"] == 2.0
    assert found.parameters == {"viscosity": (0.1, 0.1)}
    (report,) = found.sets
    (field,) = report.fields
    assert (report.split, report.trajectories, report.examined) == ("train", 4, 4)
    assert (field.low, field.high) == pytest.approx((values.min(), values.max()), rel=1e-6)
    assert (field.mean, field.std) == pytest.approx((values.mean(), values.std()), rel=1e-5)
    assert field.change == pytest.approx(np.diff(values, axis=1).std(), rel=1e-5)
    assert found.command == f"ssno train {path}"
    assert list(sets) == ["train"]


def test_a_bare_array_is_listed_with_a_guess_at_its_axes(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", u=np.zeros((12, 64, 64, 20), np.float32), n=np.zeros(3))
    found, sets = inspect_data(tmp_path / "a.npz")
    assert found.format is None
    assert not sets
    assert found.arrays == {"u": "float32 (12, 64, 64, 20)", "n": "float64 (3,)"}
    assert "have no names" in found.problem
    assert found.command == f'ssno data inspect {tmp_path / "a.npz"} --arrays u --axes "batch x y time"'
    again, sets = inspect_data(tmp_path / "a.npz", ReadOptions(axes="batch x y time", arrays=("u",)))
    assert again.format == "arrays"
    assert sets["all"].shape == (12, 20, 1, 64, 64)
    wrong, _ = inspect_data(tmp_path / "a.npz", ReadOptions(axes="batch time"))
    assert (wrong.format, wrong.command) == (None, "")


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((200, 512), "time x"),
        ((100, 26, 512), "batch time x"),
        ((100, 26, 512, 2), "batch time x channel"),
        ((1200, 64, 64, 20), "batch x y time"),
        ((50, 21, 5, 128, 128), "batch time channel x y"),
        ((50, 21, 128, 128, 5), "batch time x y channel"),
        ((10, 30, 48, 96), "batch time x y"),
        ((8, 20, 32, 32, 32, 3), "batch time x y z channel"),
        ((21, 32, 32, 32), "time x y z"),
        ((7,), None),
        ((2, 3, 4, 5, 6, 7, 8), None),
        ((100, 50, 30, 40, 20, 60), None),
    ],
)
def test_guesses_at_the_axes_of_typical_arrays(shape, axes) -> None:
    assert suggest_axes(shape) == axes


def test_bad_values_duplicates_and_frozen_trajectories_are_found(tmp_path) -> None:
    values = noise(9, 5, 16)
    values[4, 2, 3] = np.nan
    values[6, 1, 1] = np.inf
    values[7] = values[1]
    values[2, 3] = values[2, 2]
    np.savez(tmp_path / "a.npz", u=values)
    found, _ = inspect_data(tmp_path / "a.npz", ReadOptions(axes="batch time x", dt=1.0, lengths=(1.0,)))
    (report,) = found.sets
    assert report.not_finite == (4, 6)
    assert report.duplicates == ((1, 7),)
    assert report.frozen == (2,)
    assert report.fields[0].bad == 2
    assert np.isfinite([report.fields[0].low, report.fields[0].std]).all()


def test_a_field_that_is_nan_everywhere_is_reported_and_not_a_crash(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", u=np.full((3, 4, 8), np.nan))
    found, _ = inspect_data(tmp_path / "a.npz", ReadOptions(axes="batch time x"))
    assert found.sets[0].not_finite == (0, 1, 2)
    assert found.sets[0].fields[0].bad == 96


def test_changes_beyond_single_precision_are_no_crash(tmp_path) -> None:
    values = np.zeros((1, 3, 8), np.float32)
    values[0, ::2] = 3e38
    values[0, 1] = -3e38
    np.savez(tmp_path / "a.npz", u=values)
    found, _ = inspect_data(tmp_path / "a.npz", ReadOptions(axes="batch time x"))
    assert found.sets[0].fields[0].high == pytest.approx(3e38)


def test_leaks_between_files_are_found_by_frame_wherever_it_stands(tmp_path) -> None:
    train, test = noise(6, 8, 16), noise(4, 5, 16, seed=1)
    test[1, 2] = train[3, 7]
    test[2] = train[5, :5]
    np.savez(tmp_path / "train.npz", u=train)
    np.savez(tmp_path / "test.npz", u=test)
    options = ReadOptions(axes="batch time x")
    found, _ = inspect_data(tmp_path / "test.npz", options, against=tmp_path / "train.npz")
    (shared,) = found.leaks
    assert (shared.here, shared.there, shared.frames, shared.trajectories) == ("all", "train.npz:all", 6, 1)
    assert shared.example == (1, 3)
    clean, _ = inspect_data(tmp_path / "train.npz", options, against=tmp_path / "train.npz")
    assert clean.leaks[0].trajectories == 6


def test_leaks_between_the_splits_of_a_folder_are_found(tmp_path, public_files) -> None:
    public_files.lpsda_ks(tmp_path / "KS_train.h5", "train", samples=5)
    public_files.lpsda_ks(tmp_path / "KS_valid.h5", "valid", samples=2)  # the same numbers: the same seed
    found, _ = inspect_data(tmp_path)
    assert [(shared.here, shared.there, shared.trajectories) for shared in found.leaks] == [("valid", "train", 2)]
    assert found.format == "folder of splits"


def test_uniform_frames_are_no_duplicates_and_no_leaks() -> None:
    still = np.zeros((3, 4, 1, 8), np.float32)
    assert duplicates(hashes(still)) == []
    assert frozen(hashes(still)) == []
    assert leak(hashes(still), hashes(still), here="a", there="b") is None


def test_a_large_file_is_sampled_evenly_unless_everything_is_asked_for(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", u=noise(10, 4, 16))
    options = ReadOptions(axes="batch time x")
    found, _ = inspect_data(tmp_path / "a.npz", options, most=4 * 4 * 16 * 4)
    assert (found.sets[0].examined, found.sets[0].trajectories) == (4, 10)
    found, _ = inspect_data(tmp_path / "a.npz", options, most=None)
    assert found.sets[0].examined == 10
    found, _ = inspect_data(tmp_path / "a.npz", options, most=4 * 4 * 16 * 2)
    assert (found.sets[0].examined, found.sets[0].frames) == (4, 2)  # of long trajectories, the first frames


def test_axes_that_do_not_look_periodic_are_mentioned(tmp_path) -> None:
    x = np.linspace(0, 1, 64, endpoint=False)
    ramp = np.broadcast_to(x, (2, 3, 64)) + 0.01 * noise(2, 3, 64)
    wave = np.broadcast_to(np.sin(2 * np.pi * x), (2, 3, 64)) + 0.01 * noise(2, 3, 64)
    for name, values, mentioned in (("ramp", ramp, True), ("wave", wave, False)):
        np.savez(tmp_path / f"{name}.npz", u=values)
        options = {"axes": "batch time x", "dt": 1.0, "lengths": (1.0,)}
        found, _ = inspect_data(tmp_path / f"{name}.npz", ReadOptions(**options))
        assert any("x does not look periodic" in note for note in found.notes) == mentioned
        bounded, _ = inspect_data(tmp_path / f"{name}.npz", ReadOptions(**options, periodic=False))
        assert bounded.notes == ()
        assert bounded.command.endswith("--data.periodic False")


POINTS = np.arange(32)


@pytest.mark.parametrize(
    ("shape", "remark"),
    [
        (np.sin(np.pi * POINTS / 31), "is always 0 at both ends"),  # no slip, points on the walls
        (POINTS * (31 - POINTS) * np.exp(-((POINTS - 16.0) ** 2) / 30), "is always 0 at both ends"),  # far from them
        (1 + np.sin(np.pi * POINTS / 31), "bends"),
        (np.sin(np.pi * (POINTS + 0.5) / 32), "bends"),  # walls half a cell outside
        (np.sin(2 * np.pi * (POINTS + 0.5) / 32), None),
        (np.exp(-((POINTS - 16.0) ** 2) / 8), None),  # in the middle of a periodic box, zero far from there
    ],
)
def test_walls_where_a_field_is_zero_are_noticed_unless_the_user_calls_the_axis_periodic(
    tmp_path, shape, remark
) -> None:
    strength = 1 + np.random.default_rng(0).random((6, 5, 1))
    still = np.ones_like(strength * shape)
    np.savez(tmp_path / "a.npz", u=np.stack([still, strength * shape], axis=2).astype(np.float32))
    told = {"axes": "batch time channel x", "fields": ("rest", "u")}
    found, _ = inspect_data(tmp_path / "a.npz", ReadOptions(**told))
    said = [note for note in found.notes if note.startswith("x does not look periodic: `u` ")]
    assert ("--data.periodic none" in found.command) == (len(said) == 1) == (remark is not None)
    assert remark is None or remark in said[0]
    trusted, _ = inspect_data(tmp_path / "a.npz", ReadOptions(**told, periodic=("x",)))
    assert not [note for note in trusted.notes if "periodic" in note]
    assert "none" not in trusted.command


def test_walls_at_different_values_are_noticed() -> None:
    frames = np.random.default_rng(0).normal(size=(4, 30)).cumsum(axis=1)
    frames -= np.linspace(frames[:, 0], frames[:, -1] - 0.5, 30, axis=1)
    assert wall(frames) == "is always 0 at one end and 0.5 at the other"
    assert wall(np.full((4, 30), np.nan)) == ""


def test_gaps_do_not_hide_an_axis_that_does_not_look_periodic(tmp_path) -> None:
    ramp = np.linspace(0, 1, 64, endpoint=False) + 0.01 * noise(3, 4, 64)
    ramp[1, :, 5:9], ramp[2] = np.inf, np.nan
    np.savez(tmp_path / "ramp.npz", u=ramp)
    found, _ = inspect_data(tmp_path / "ramp.npz", ReadOptions(axes="batch time x", dt=1.0, lengths=(1.0,)))
    assert any("x does not look periodic" in note for note in found.notes)
    assert "--data.periodic none" in found.command


def test_one_long_run_suggests_cutting_it(tmp_path) -> None:
    np.save(tmp_path / "run.npy", noise(400, 16))
    found, _ = inspect_data(tmp_path / "run.npy", ReadOptions(axes="time x", dt=0.5, lengths=(2.0,)))
    expected = f"ssno train {tmp_path}/run.npy --data.axes 'time x' --data.dt 0.5 --data.lengths 2.0 --data.segment 20"
    assert found.command == expected


def test_uneven_times_have_no_time_step(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", u=noise(4, 8), t=np.array([0.0, 1.0, 3.0, 7.0]), x=np.arange(8.0))
    found, _ = inspect_data(tmp_path / "a.npz")
    assert found.dt is None


def test_a_file_that_is_no_data_is_refused(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(DataError, match="is not an HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch file"):
        inspect_data(tmp_path / "a.txt")


def test_arrays_beside_the_state_tell_its_axes() -> None:
    beside = {"t": (12,), "x_m": (80,), "y_m": (48,), "feed_rate": (24,), "u": (24, 2, 80, 48, 12)}
    assert suggest_axes((24, 2, 80, 48, 12), beside) == "batch channel x y time"
    assert suggest_axes((24, 80, 48, 12), beside) == "batch x y time"
    assert suggest_axes((80, 48, 12), beside) == "x y time"
    assert suggest_axes((24, 12, 12, 80), beside) == "batch time y x", "two axes could be the time, one is x"


@pytest.mark.parametrize("columns", [(), (1,)], ids=["lists", "columns of MATLAB"])
def test_a_list_of_parameters_tells_trajectories_and_coordinates_tell_space(columns) -> None:
    shape, first = (72, 48, 80, 24), {"solid": (72, 48, 80)}
    parameters, places = {"reynolds": (72, *columns)}, {"x": (48, *columns), "y": (80, *columns)}
    for beside in (first | parameters, first | places, first | parameters | places, parameters | places):
        assert suggest_axes(shape, beside) == "batch x y time"
    assert suggest_axes(shape, first | {"y": (48,), "x": (80,)}) == "batch y x time", "named as the file names them"
    assert suggest_axes((24, 48, 80), {"clock": (24,), "solid": (48, 80)}) == "time x y"
    assert suggest_axes((48, 24, 80, 48), {"t": (24,), "x": (80,), "y": (48,)}) == "batch time x y", "48 of both"
    assert suggest_axes((20, 500, 64), {"t": (500,)}) == "batch time x", "the longest axis is time"
    assert suggest_axes((72, 48, 80, 24, 20), parameters | places) is None, "two axes too many"


def test_a_map_of_an_obstacle_and_lists_of_times_tell_the_axes() -> None:
    beside = {"solid": (80, 48), "clock_s": (16,), "height_m": (48,), "feed": (48,)}
    assert suggest_axes((48, 80, 48, 16), beside) == "batch x y time"
    assert suggest_axes((48, 80, 48, 3), beside) == "time x y channel"
    twice = (80, 48, 80, 48, 16)
    assert suggest_axes(twice, {"solid": (80, 48)}) == suggest_axes(twice), "it fits in two places"


def test_tables_fit_into_eighty_columns(tmp_path) -> None:
    values = np.random.default_rng(0).normal(size=(4, 6, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "a.npz", u=values, feed_rate_of_the_run=np.arange(4.0))
    options = ReadOptions(axes="batch time channel x y", arrays=("u",), context=("feed_rate_of_the_run",))
    found, _ = inspect_data(tmp_path / "a.npz", options)
    console = Console(width=80, record=True, file=io.StringIO())
    show(found, None, console)
    table = [line for line in console.export_text().splitlines() if line.strip().startswith("all")]
    assert len(table) == 3, "no line is folded"
