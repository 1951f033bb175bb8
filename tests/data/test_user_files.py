"""Files as users have them: walls along some axes, odd names, times of their own."""

import h5py
import numpy as np
import pytest

from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.moments import summarise
from ssno.data.normalise import fit
from ssno.data.options import DataOptions
from ssno.data.store.convert import convert_data
from ssno.data.trajectories import Trajectories

VALUES = np.random.default_rng(0).normal(size=(5, 6, 8, 4))


def save(path, **arrays):
    np.savez(path, u=VALUES, **arrays)
    return path


def flags(data) -> dict[str, bool]:
    return {axis.name: axis.periodic for axis in data.axes}


@pytest.mark.parametrize(
    ("periodic", "expected"),
    [
        (True, {"x": True, "y": True}),
        (False, {"x": False, "y": False}),
        (("x",), {"x": True, "y": False}),
        (("none",), {"x": False, "y": False}),
        ([False, True], {"x": True, "y": False}),  # in the order of the axes as they were named: y, then x
    ],
)
def test_every_axis_has_a_boundary_of_its_own(tmp_path, periodic, expected) -> None:
    path = save(tmp_path / "a.npz")
    assert flags(load_dataset(path, "all", axes="batch time y x", periodic=periodic)) == expected
    assert flags(Trajectories.from_array(VALUES, axes="batch time y x", periodic=periodic)) == expected


def test_boundaries_of_recognised_formats_can_be_changed(tmp_path, public_files) -> None:
    public_files.the_well(tmp_path / "wake.hdf5")
    assert flags(load_dataset(tmp_path / "wake.hdf5", "all")) == {"x": True, "y": False}
    options = DataOptions(name=str(tmp_path / "wake.hdf5"), periodic=("y",))
    assert flags(options.load("all")) == {"x": False, "y": True}


def test_boundaries_of_axes_that_are_not_there_are_refused(tmp_path) -> None:
    with pytest.raises(DataError, match=r"`periodic` must name axes among y, x, .* got \('z',\)"):
        load_dataset(save(tmp_path / "a.npz"), axes="batch time y x", periodic=("z",))
    with pytest.raises(DataError, match=r"have a flag for each of them; got \(True,\)"):
        load_dataset(save(tmp_path / "a.npz"), axes="batch time y x", periodic=[True])


def test_lengths_follow_the_order_in_which_axes_were_named(tmp_path) -> None:
    data = load_dataset(save(tmp_path / "a.npz"), "all", axes="batch time y x", lengths=(8.0, 2.0))
    assert [(axis.name, axis.points, axis.length) for axis in data.axes] == [("x", 4, 2.0), ("y", 8, 8.0)]
    again = Trajectories.from_array(VALUES, axes="batch time y x", spacing=(1.0, 0.5))
    assert again.axes == data.axes


def test_times_and_coordinates_can_be_named(tmp_path) -> None:
    path = save(tmp_path / "a.npz", clock_s=0.5 * np.arange(6), height_m=3.0 * np.arange(8), across=np.arange(4.0))
    named = {"times": "clock_s", "coordinates": ("height_m", "across")}
    data = load_dataset(path, "all", axes="batch time y x", arrays=("u",), **named)
    assert data.time_step == 0.5
    assert [(axis.name, axis.length) for axis in data.axes] == [("x", 4.0), ("y", 24.0)]
    with pytest.raises(DataError, match="`coordinates` must name one array per space axis"):
        load_dataset(path, axes="batch time y x", arrays=("u",), coordinates=("height_m",))
    with pytest.raises(DataError, match=r"has shape \(6,\) for 8 points along y"):
        load_dataset(path, axes="batch time y x", arrays=("u",), coordinates=("clock_s", "across"))
    with pytest.raises(DataError, match=r"has shape \(8,\), which are no times of 6 frames"):
        load_dataset(path, axes="batch time y x", arrays=("u",), times="height_m")
    with pytest.raises(ValueError, match="Give `dt` or `times`, not both"):
        load_dataset(path, dt=0.1, times="clock_s")
    with pytest.raises(ValueError, match="Give `lengths` or `coordinates`, not both"):
        load_dataset(path, lengths=(1.0, 1.0), coordinates=("height_m", "across"))
    with pytest.raises(TypeError, match="Unknown option `lenghts`. Did you mean `lengths`?"):
        load_dataset(path, lenghts=(1.0,))


@pytest.mark.parametrize("word", ["run", "case", "realization", "ensemble"])
def test_dimensions_that_count_runs_are_batch(tmp_path, word) -> None:
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file["u"] = VALUES
        for axis, name in enumerate((word, "time", "y", "x")):
            file["u"].dims[axis].label = name
    assert load_dataset(tmp_path / "a.nc", "all").shape == (5, 6, 1, 4, 8)


def test_pdebenchs_flows_in_one_dimension_are_batch_time_x(tmp_path) -> None:
    """More frames than points, and one time more than frames."""
    with h5py.File(tmp_path / "1D_CFD.hdf5", "w") as file:
        for name in ("Vx", "density", "pressure"):
            file[name] = np.random.default_rng(0).normal(size=(3, 21, 16))
        file["x-coordinate"], file["t-coordinate"] = (np.arange(16) + 0.5) / 16, 0.01 * np.arange(22)
    data = load_dataset(tmp_path / "1D_CFD.hdf5", "all")
    assert (data.fields, data.shape) == (("Vx", "density", "pressure"), (3, 21, 3, 16))
    assert "The last entry of 't-coordinate' belongs to no frame." in data.notes


def test_times_that_a_model_cannot_step_are_refused_with_the_remedy(tmp_path) -> None:
    options = {"axes": "batch time y x", "arrays": ("u",)}
    path = save(tmp_path / "a.npz", time=np.array([0.0, 1, 2, 4, 8, 16]))
    with pytest.raises(DataError, match="is not uniform: .* interpolate them before, or give --dt to count frames"):
        load_dataset(path, **options)
    assert load_dataset(path, "all", **options, dt=1.0).time_step == 1.0
    clocks = np.arange(6) * np.linspace(1, 2, 5)[:, None]
    with pytest.raises(DataError, match="'time' in .* has other times for other trajectories"):
        load_dataset(save(tmp_path / "b.npz", time=clocks), **options)
    same = save(tmp_path / "c.npz", time=np.tile(0.25 * np.arange(6), (5, 1)))
    assert load_dataset(same, "all", **options).time_step == 0.25


@pytest.mark.parametrize("kind", ["static", "moving", "nan"])
def test_masked_points_read_as_zero_and_stay_out_of_statistics(tmp_path, kind) -> None:
    outside = np.zeros((5, 6, 8, 4), bool)
    outside[..., 2:4, 1] = True
    if kind == "moving":
        outside[:, 3] = np.roll(outside[:, 3], 2, axis=1)
    values = np.where(outside, np.nan if kind == "nan" else 1e6, VALUES)
    np.savez(tmp_path / "a.npz", u=values, solid=outside if kind == "moving" else outside[0, 0])
    options = {"axes": "batch time x y", "arrays": ("u",), "mask": "nan" if kind == "nan" else "solid"}
    data = load_dataset(tmp_path / "a.npz", "all", **options)
    name = "mask" if kind == "nan" else "solid"
    assert (data.fields, data.context_fields, data.mask) == (("u",), (name,), name)
    for again in (data, data.in_memory(), data.select(indices=[0, 1, 2, 3, 4])):
        frames = again.read(slice(None))
        np.testing.assert_array_equal(frames.context[:, :, 0], outside)
        np.testing.assert_array_equal(frames.state[:, :, 0], np.where(outside, 0, VALUES).astype(np.float32))
    norms = fit(data, "zscore")
    assert norms.state.shift[0] == pytest.approx(VALUES[~outside].mean(), abs=1e-6)
    assert norms.state.scale[0] == pytest.approx(VALUES[~outside].std(), rel=1e-6)
    assert (norms.context.shift, norms.context.scale) == ((0.0,), (1.0,))
    assert summarise(data).state.bad.tolist() == [0]
    convert_data({"train": data}, tmp_path / "ours", source="a.npz")
    assert load_dataset(tmp_path / "ours", "all").mask == name


def test_masks_that_cannot_be_are_refused(tmp_path) -> None:
    path = save(tmp_path / "a.npz", mask=np.zeros((8, 4)))
    options = {"axes": "batch time x y", "arrays": ("u",)}
    with pytest.raises(DataError, match="has no array 'mosk'.* Did you mean `mask`"):
        load_dataset(path, **options, mask="mosk")
    data = load_dataset(path, "all", **options, mask="mask")
    with pytest.raises(DataError, match="has a mask; use reduction='stride'"):
        data.select(points=4, reduction="mean")
    with pytest.raises(DataError, match="has a mask; use reduction='stride'"):
        Trajectories.from_array(VALUES, axes="batch time x y").select(points=4, reduction="mean").masked("nan")
    with pytest.raises(DataError, match="has a field called `mask` already"):
        load_dataset(path, "all", **options, context=("mask",)).masked("nan")
    with pytest.raises(DataError, match="has no known field 'land' to be its mask"):
        data.masked("land")


@pytest.mark.parametrize("kind", ["npy", "npz", "h5"])
def test_a_folder_with_a_file_for_each_run_is_one_set(tmp_path, kind) -> None:
    folder = tmp_path / "channel"
    folder.mkdir()
    for number in (0, 1, 2, 10):
        run = VALUES[number % 5] + number
        if kind == "h5":
            with h5py.File(folder / f"run_{number}.h5", "w") as file:
                file["u"] = run
        else:
            (np.save if kind == "npy" else np.savez)(folder / f"run_{number}.{kind}", run)
    data = load_dataset(folder, "all", axes="time x y")
    assert (data.name, data.shape) == ("channel", (4, 6, 1, 8, 4))
    np.testing.assert_array_equal(data.read([3]).state[0, :, 0], (VALUES[0] + 10).astype(np.float32))
    assert [len(load_dataset(folder, split, axes="time x y")) for split in ("train", "valid", "test")] == [2, 1, 1]
