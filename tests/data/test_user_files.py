"""Files as users have them: walls along some axes, odd names, times of their own."""

import h5py
import numpy as np
import pytest
from scipy.io import netcdf_file
from tests.data.own_files import VALUES, grouped, save

from ssno.data.convert import convert_data
from ssno.data.errors import DataError
from ssno.data.load import DataOptions, load_dataset
from ssno.data.normalise import fit, summarise
from ssno.data.sandbox.parent import contents_of
from ssno.data.trajectories import Trajectories


def flags(data) -> dict[str, bool]:
    return {axis.name: axis.periodic for axis in data.axes}


@pytest.mark.parametrize(
    ("periodic", "expected"),
    [
        (True, {"x": True, "y": True}),
        (False, {"x": False, "y": False}),
        (("x",), {"x": True, "y": False}),
        (("none",), {"x": False, "y": False}),
        ("x", {"x": True, "y": False}),
        ("none", {"x": False, "y": False}),
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
    with pytest.raises(DataError, match=r"`periodic` must be axis names \(y, x\), .* got \('z',\)"):
        load_dataset(save(tmp_path / "a.npz"), axes="batch time y x", periodic=("z",))
    with pytest.raises(DataError, match=r"a flag for each axis; got \(True,\)"):
        load_dataset(save(tmp_path / "a.npz"), axes="batch time y x", periodic=[True])


def test_lengths_follow_the_order_in_which_axes_were_named(tmp_path) -> None:
    data = load_dataset(save(tmp_path / "a.npz"), "all", axes="batch time y x", lengths=(8.0, 2.0))
    assert [(axis.name, axis.points, axis.length) for axis in data.axes] == [("x", 4, 2.0), ("y", 8, 8.0)]
    again = Trajectories.from_array(VALUES, axes="batch time y x", spacing=(1.0, 0.5))
    assert again.axes == data.axes


@pytest.mark.parametrize("word", ["run", "case", "experiment", "realization", "ensemble"])
def test_dimensions_that_count_runs_are_batch(tmp_path, word) -> None:
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file["u"] = VALUES
        for axis, name in enumerate((word, "time", "y", "x")):
            file["u"].dims[axis].label = name
    assert load_dataset(tmp_path / "a.nc", "all").shape == (5, 6, 1, 4, 8)


def twins(folder) -> list:
    """One set of runs three times: bare HDF5 with time last, classic NetCDF, and NetCDF 4."""
    names = ("run", "across_m", "height_m", "clock_s")
    solid = np.zeros((8, 4), np.int8)
    solid[2:4, 1] = 1
    arrays = {
        "temperature": (VALUES.transpose(0, 2, 3, 1).astype(np.float32), names),
        "solid": (solid, names[1:3]),
        "feed": (np.linspace(0.1, 0.5, 5), names[:1]),
        "across_m": (np.arange(8) / 4, names[1:2]),
        "height_m": (np.arange(4) + 0.5, names[2:3]),
        "clock_s": (0.25 * np.arange(6), names[3:]),
    }
    with h5py.File(folder / "bare.h5", "w") as file:
        for key, (values, _) in arrays.items():
            file[key] = values
    with netcdf_file(folder / "classic.nc", "w") as file:
        for key, size in zip(names, (5, 8, 4, 6), strict=True):
            file.createDimension(key, size)
        for key, (values, dims) in arrays.items():
            file.createVariable(key, values.dtype, dims)[:] = values
    with h5py.File(folder / "four.nc", "w") as file:
        for key, (values, _) in arrays.items():
            file[key] = values
        file["run"] = np.arange(5.0)
        for key in names:
            file[key].make_scale(key)
        for key, (values, dims) in arrays.items():
            for axis in range(values.ndim if key not in names else 0):
                file[key].dims[axis].attach_scale(file[dims[axis]])
    return [folder / name for name in ("bare.h5", "classic.nc", "four.nc")]


def test_twins_in_other_formats_are_read_to_the_same_numbers(tmp_path) -> None:
    said = {"arrays": "temperature", "times": "clock_s", "coordinates": ("across_m", "height_m")}
    said |= {"context": "feed", "mask": "solid"}
    files = twins(tmp_path)
    first, *others = [load_dataset(path, "all", axes="batch x y time", periodic="x", **said) for path in files]
    named = [load_dataset(path, "all", periodic="across_m", **said) for path in files[1:]]
    wanted = first.read(slice(None))
    assert (wanted.state[..., 2:4, 1] == 0).all()
    for data in (*others, *named):
        found = data.read(slice(None))
        assert (found.state == wanted.state).all()
        assert (found.context == wanted.context).all()
        assert (data.fields, data.context_fields, data.mask) == (("temperature",), ("feed", "solid"), "solid")
        assert (data.times == first.times).all()
        assert [axis.coordinates().tolist() for axis in data.axes] == [
            axis.coordinates().tolist() for axis in first.axes
        ]
        assert [axis.periodic for axis in data.axes] == [True, False]


def test_dimensions_of_which_none_is_time_are_told(tmp_path) -> None:
    _, *named = twins(tmp_path)
    for path in named:
        with pytest.raises(DataError, match=r"are called run, across_m, height_m, clock_s.* --times NAME"):
            load_dataset(path, arrays="temperature")


def test_pdebenchs_flows_in_one_dimension_are_batch_time_x(tmp_path) -> None:
    """More frames than points, and one time more than frames."""
    with h5py.File(tmp_path / "1D_CFD.hdf5", "w") as file:
        for name in ("Vx", "density", "pressure"):
            file[name] = np.random.default_rng(0).normal(size=(3, 21, 16))
        file["x-coordinate"], file["t-coordinate"] = (np.arange(16) + 0.5) / 16, 0.01 * np.arange(22)
    data = load_dataset(tmp_path / "1D_CFD.hdf5", "all")
    assert (data.fields, data.shape) == (("Vx", "density", "pressure"), (3, 21, 3, 16))
    assert "The last entry of 't-coordinate' belongs to no frame." in data.notes


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
        data.select(resolution=4, reduction="mean")
    with pytest.raises(DataError, match="has a mask; use reduction='stride'"):
        Trajectories.from_array(VALUES, axes="batch time x y").select(resolution=4, reduction="mean").masked("nan")
    with pytest.raises(DataError, match="has a field called `mask` already"):
        load_dataset(path, "all", **options, context=("mask",)).masked("nan")
    with pytest.raises(DataError, match="has no context field 'land' to be its mask"):
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


def test_a_group_for_each_run_is_one_set(tmp_path) -> None:
    path = grouped(tmp_path / "runs.h5")
    data = load_dataset(path, "all", context=["feed", "kill"])
    assert data.shape[:2] == (11, 6)
    assert data.fields == ("u",)
    assert data.axes[0].length == pytest.approx(1.0)
    np.testing.assert_allclose(data.parameters["feed"], 0.01 * np.arange(11))
    frames = data.read(range(11))
    numbers = np.arange(11.0)  # run10 comes after run9
    np.testing.assert_allclose(frames.state[:, 0, 0, 0], numbers)
    np.testing.assert_allclose(frames.context[:, 3, :, 5], np.stack([0.01 * numbers, 0.5 * numbers], 1), rtol=1e-6)


def test_fields_may_be_called_like_coordinates(tmp_path) -> None:
    """Temperature and height, as meteorologists call them."""
    options = {"axes": "batch time x", "dt": 0.1, "lengths": (1.0,)}
    np.savez(tmp_path / "met.npz", T=VALUES[..., 0], U=VALUES[..., 1], Z=VALUES[..., 2])
    np.savez(tmp_path / "only.npz", T=VALUES[..., 0])
    data = load_dataset(tmp_path / "met.npz", "all", **options)
    assert data.fields == ("T", "U", "Z")
    np.testing.assert_array_equal(data.read([1]).state[0].movedim(1, 2), VALUES[1, :, :, :3].astype(np.float32))
    assert data.notes == ("T, Z: read as fields, having all axes of the state. Choose with --arrays.",)
    assert load_dataset(tmp_path / "only.npz", "all", **options).fields == ("T",)
    assert load_dataset(tmp_path / "met.npz", "all", arrays="T", **options).notes == ()


def test_coordinates_of_several_axes_are_no_fields(tmp_path) -> None:
    y, x = np.meshgrid(np.arange(4.0), np.arange(8.0))
    mesh = save(tmp_path / "a.npz", X=x, Y=y, t=np.tile(np.arange(6.0), (5, 1)))
    assert load_dataset(mesh, "all", axes="batch time x y").fields == ("u",)
    with pytest.raises(DataError, match="The axes of 'u' in .* have no names"):
        load_dataset(mesh, "all")
    np.savez(tmp_path / "b.npz", usol=VALUES[0, :, :, 0], t=0.5 * np.arange(6)[:, None], x=np.arange(8.0)[:, None])
    assert load_dataset(tmp_path / "b.npz", "all", axes="time x").fields == ("usol",)  # columns, as in MATLAB


def test_packed_times_coordinates_and_parameters_are_unpacked(tmp_path) -> None:
    with netcdf_file(tmp_path / "a.nc", "w") as file:
        for name, size, scale, shift in (("time", 6, 0.1, 3.0), ("x", 8, 0.5, 0.0), ("sample", 5, 0.01, 1.0)):
            file.createDimension(name, size)
            stored = file.createVariable("nu" if name == "sample" else name, "i2", (name,))
            stored[:], stored.scale_factor, stored.add_offset = np.arange(size), scale, shift
        file.createVariable("u", "f4", ("sample", "time", "x"))[:] = VALUES[..., 0]
    data = load_dataset(tmp_path / "a.nc", "all")
    assert (data.time_step, data.times[0]) == (pytest.approx(0.1), 3.0)
    assert data.axes[0].length == pytest.approx(4.0)
    np.testing.assert_allclose(data.parameters["nu"], 1 + 0.01 * np.arange(5))


def test_names_that_are_not_utf8_are_left_out_and_told(tmp_path) -> None:
    path = tmp_path / "latin.h5"
    with h5py.File(path, "w") as file:
        file["u"] = np.random.default_rng(0).normal(size=(4, 5, 8))
        file.create_group("g")
        h5py.h5g.create(file.id, "café".encode("latin-1"))
        space = h5py.h5s.create(h5py.h5s.SCALAR)
        h5py.h5a.create(file.id, "größe".encode("latin-1"), h5py.h5t.NATIVE_DOUBLE, space)
    assert load_dataset(path, "all", axes="batch time x", dt=0.1).read([0]).state.shape == (1, 5, 1, 8)
    assert "not UTF-8" in " ".join(contents_of(path).refused.values())
