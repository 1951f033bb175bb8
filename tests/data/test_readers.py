"""Files in public formats and the user's own, read back number by number."""

import h5py
import numpy as np
import pytest

from ssno.data.errors import DataError
from ssno.data.readers.public import viscosity_in
from ssno.data.readers.registry import ReadOptions, examine, open_file, reader_for


def everything(data):
    frames = data.read(slice(None))
    return frames.state.numpy(), frames.context.numpy()


def test_pdebench_burgers_drops_the_time_that_belongs_to_no_frame(tmp_path, public_files) -> None:
    path = tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5"
    values = public_files.pdebench_burgers(path)
    assert reader_for(examine(path)).name == "PDEBench, one dimension"
    data = open_file(path)["all"]
    np.testing.assert_array_equal(everything(data)[0][:, :, 0], values)
    assert (data.name, data.fields, data.shape) == ("burgers", ("u",), (5, 21, 1, 16))
    np.testing.assert_allclose(data.times, 0.01 * np.arange(21), rtol=1e-6)
    (axis,) = data.axes
    assert (axis.length, axis.points, axis.offset, axis.periodic) == (1.0, 16, 1 / 32, True)
    np.testing.assert_allclose(data.parameters["diffusion"], 0.001 / np.pi)
    assert "22 entries for 21 frames" in data.notes[0]
    assert "Nu / pi" in data.notes[1]


def test_other_pdebench_files_of_that_layout_are_not_called_burgers(tmp_path, public_files) -> None:
    path = tmp_path / "1D_Advection_Sols_beta0.1.hdf5"
    public_files.pdebench_burgers(path)
    with h5py.File(path, "a") as file:
        del file.attrs["Nu"]
    data = open_file(path)["all"]
    assert (data.name, data.parameters) == ("pdebench", {})


@pytest.mark.parametrize(
    ("name", "coefficients", "frames", "expected"),
    [
        ("ReacDiff_Nu0.5_Rho1.0.hdf5", {"Nu": 0.5, "rho": 1.0}, 101, "pdebench"),
        ("renamed.hdf5", {"Nu": 0.5, "rho": 1.0}, 201, "pdebench"),
        ("renamed.hdf5", {"Nu": 0.5}, 101, "pdebench"),
        ("renamed.hdf5", {"Nu": 0.001}, 201, "burgers"),
    ],
)
def test_one_attribute_does_not_make_burgers(tmp_path, public_files, name, coefficients, frames, expected) -> None:
    public_files.pdebench_burgers(tmp_path / name, samples=2, frames=frames)
    with h5py.File(tmp_path / name, "a") as file:
        file.attrs.update(coefficients)
    data = open_file(tmp_path / name)["all"]
    assert (data.name, len(data.times)) == (expected, frames)
    assert ("diffusion" in data.parameters) == (expected == "burgers")


def test_an_lpsda_file_of_another_equation_is_not_called_ks(tmp_path, public_files) -> None:
    for name, expected in (
        ("Heat_train_512.h5", "Heat_train_512"),
        ("tasks_train.h5", "tasks_train"),
        ("a-ks.h5", "ks"),
    ):
        public_files.lpsda_ks(tmp_path / name, "train")
        assert open_file(tmp_path / name)["train"].name == expected


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("t-coordinate", (25,), r"`t-coordinate` has shape \(25,\) for 21 frames, expected 21 or 22 entries"),
        ("x-coordinate", (15,), r"`x-coordinate` has shape \(15,\) for 16 points"),
    ],
)
def test_pdebench_coordinates_of_wrong_length_are_refused(tmp_path, public_files, name, shape, message) -> None:
    public_files.pdebench_burgers(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        del file[name]
        file[name] = np.arange(float(shape[0]))
    with pytest.raises(DataError, match=message):
        open_file(tmp_path / "a.h5")


def test_lpsda_files_are_divided_by_their_groups_and_take_the_viscosity_from_name_or_user(
    tmp_path, public_files
) -> None:
    path = tmp_path / "KS_train_2048_nu0.075.h5"
    values = public_files.lpsda_ks(path, "train")
    (split,) = found = open_file(path)
    assert split == "train"
    data = found["train"]
    np.testing.assert_array_equal(everything(data)[0][:, :, 0], values.astype(np.float32))
    assert (data.name, data.time_step) == ("ks", pytest.approx(0.1))
    assert (data.axes[0].length, data.axes[0].offset) == (64.0, 0.0)
    assert data.parameters["viscosity"].tolist() == [0.075] * 4
    assert open_file(path, ReadOptions(viscosity=0.1))["train"].parameters["viscosity"][0] == 0.1
    public_files.lpsda_ks(tmp_path / "KS_valid.h5", "valid")
    unknown = open_file(tmp_path / "KS_valid.h5")["valid"]
    assert unknown.parameters == {}
    assert unknown.notes == ("The file does not state the viscosity: give --viscosity.",)


@pytest.mark.parametrize(
    ("name", "viscosity"),
    [
        ("KS_train_2048.h5", None),
        ("KS_train_2048_0.125.h5", 0.125),
        ("KS_valid_visc_0.1.h5", 0.1),
        ("KS_test_viscosity=0.075_b.h5", 0.075),
        ("ks-nu1e-2.h5", 0.01),
    ],
)
def test_viscosity_in_file_names(tmp_path, name, viscosity) -> None:
    assert viscosity_in(tmp_path / name) == viscosity


def test_lpsda_files_whose_samples_differ_in_grid_or_shape_are_refused(tmp_path, public_files) -> None:
    path = tmp_path / "KS_train.h5"
    public_files.lpsda_ks(path, "train")
    with h5py.File(path, "a") as file:
        file["train/t"][1] *= 1.05
    with pytest.raises(DataError, match="`train/t` differs between samples by up to 0.125"):
        open_file(path)
    public_files.lpsda_ks(tmp_path / "b.h5", "train")
    with h5py.File(tmp_path / "b.h5", "a") as file:
        del file["train/x"]
        file["train/x"] = np.zeros((4, 5))
    with pytest.raises(DataError, match=r"`train/x` has shape \(4, 5\), expected \(4, 32\)"):
        open_file(tmp_path / "b.h5")
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["train/pde_3-4"] = np.zeros((3, 4))
    with pytest.raises(DataError, match=r"has shape \(3, 4\), expected \(sample, time, x\)"):
        open_file(tmp_path / "c.h5")


def test_the_well_gives_scalars_vectors_tensors_and_constant_fields(tmp_path, public_files) -> None:
    arrays = public_files.the_well(tmp_path / "wake.hdf5")
    data = open_file(tmp_path / "wake.hdf5")["all"]
    state, context = everything(data)
    assert data.fields == (
        *("density", "profile", "velocity_x", "velocity_y"),
        *("stress_xx", "stress_xy", "stress_yx", "stress_yy"),
    )
    assert data.context_fields == ("mask",)
    np.testing.assert_array_equal(state[:, :, 0], arrays["t0_fields/density"])
    np.testing.assert_array_equal(state[:, :, 1], np.repeat(arrays["t0_fields/profile"][..., None], 4, axis=-1))
    np.testing.assert_array_equal(state[:, :, 3], arrays["t1_fields/velocity"][..., 1])
    np.testing.assert_array_equal(state[:, :, 6], arrays["t2_fields/stress"][..., 1, 0])
    np.testing.assert_array_equal(context[1, 3, 0], arrays["t0_fields/mask"])
    x, y = data.axes
    assert (x.length, x.offset, x.periodic) == (2.0, 0.0, True)
    assert (y.length, y.offset, y.periodic) == (1.0, 0.125, False)
    assert data.time_step == 0.25
    assert data.parameters["angle"].tolist() == [0, 1, 2]
    assert data.parameters["Re"].tolist() == [100.0] * 3


def test_the_well_in_three_dimensions(tmp_path, public_files) -> None:
    arrays = public_files.the_well_3d(tmp_path / "mhd.hdf5")
    data = open_file(tmp_path / "mhd.hdf5")["all"]
    vectors = [f"{name}_{axis}" for name in ("magnetic_field", "velocity") for axis in "xyz"]
    assert data.fields == ("density", *vectors)
    assert data.shape == (2, 3, 7, 4, 6, 8)
    state, _ = everything(data)
    np.testing.assert_array_equal(state[:, :, 0], arrays["t0_fields/density"])
    np.testing.assert_array_equal(state[:, :, 4:], np.moveaxis(arrays["t1_fields/velocity"], -1, 2))
    assert [(axis.name, axis.points, axis.length, axis.periodic) for axis in data.axes] == [
        ("x", 4, 1.0, True),
        ("y", 6, 1.0, True),
        ("z", 8, 1.0, True),
    ]
    assert {name: values.tolist() for name, values in data.parameters.items()} == {"Ma": [0.7, 0.7], "Ms": [1.5, 1.5]}
    half = data.select(resolution=2).read([1]).state.numpy()
    np.testing.assert_array_equal(half[0, :, 6], arrays["t1_fields/velocity"][1, :, ::2, ::2, ::2, 2])


def test_context_is_exactly_what_was_named(tmp_path, public_files) -> None:
    arrays = public_files.the_well(tmp_path / "wake.hdf5")
    data = open_file(tmp_path / "wake.hdf5", ReadOptions(context=("velocity", "profile")))["all"]
    assert data.context_fields == ("velocity_x", "velocity_y", "profile")
    np.testing.assert_array_equal(data.read([1]).context[0, :, :2], np.moveaxis(arrays["t1_fields/velocity"][1], -1, 1))
    none = open_file(tmp_path / "wake.hdf5", ReadOptions(context=("none",)))["all"]
    assert (none.context_fields, none.fields) == (
        (),
        ("density", "profile", *data.context_fields[:2], *data.fields[1:]),
    )
    with pytest.raises(DataError, match="has no field 'speed'; it has density"):
        open_file(tmp_path / "wake.hdf5", ReadOptions(context=("speed",)))
    with pytest.raises(DataError, match="No field of 'wake' is left to predict: all of density"):
        open_file(tmp_path / "wake.hdf5", ReadOptions(context=("velocity", "profile", "density", "stress")))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda file: file["dimensions"].attrs.pop("spatial_dims"), "`spatial_dims` of `dimensions` must name 1 to 3"),
        (lambda file: file["dimensions"].attrs.update({"spatial_dims": ["x", "x"]}), "must name 1 to 3 axes"),
        (lambda file: file["dimensions"].attrs.update({"spatial_dims": ["batch", "x"]}), "must name 1 to 3 axes"),
        (
            lambda file: file["dimensions"].attrs.update({"spatial_dims": 3}),
            "looks like 'The Well .*but does not follow",
        ),
        (lambda file: file["t0_fields/density"].attrs.update({"time_varying": False}), "its attributes declare"),
        (
            lambda file: file["t0_fields/density"].attrs.update({"dim_varying": [True]}),
            "`dim_varying` must have one flag",
        ),
        (lambda file: file["t0_fields"].attrs.update({"field_names": ["rho"]}), "has no array 't0_fields/rho'"),
        (lambda file: file.pop("dimensions/time"), "has no array 'dimensions/time'"),
        (
            lambda file: (file.pop("dimensions/time"), file.update({"dimensions/time": np.eye(5)})),
            r"`dimensions/time` has shape \(5, 5\)",
        ),
        (
            lambda file: (file.pop("dimensions/x"), file.update({"dimensions/x": np.eye(6)})),
            "only fixed uniform grids are read",
        ),
        (
            lambda file: file["dimensions/x"].attrs.update({"length": -1.0, "offset": 0.0, "periodic": True}),
            "`length` of axis 'x' must be a positive number",
        ),
    ],
)
def test_damaged_descriptions_of_the_well_are_refused(tmp_path, public_files, damage, message) -> None:
    public_files.the_well(tmp_path / "wake.hdf5")
    with h5py.File(tmp_path / "wake.hdf5", "a") as file:
        damage(file)
    with pytest.raises(DataError, match=message):
        open_file(tmp_path / "wake.hdf5")


def test_grids_of_the_well_that_are_not_cartesian_are_mentioned(tmp_path, public_files) -> None:
    public_files.the_well(tmp_path / "wake.hdf5")
    with h5py.File(tmp_path / "wake.hdf5", "a") as file:
        file.attrs["grid_type"] = "spherical"
    (note,) = open_file(tmp_path / "wake.hdf5")["all"].notes
    assert note.startswith("`grid_type` is 'spherical'")


def test_times_of_the_well_may_be_stored_per_sample_if_they_agree(tmp_path, public_files) -> None:
    public_files.the_well(tmp_path / "wake.hdf5")
    with h5py.File(tmp_path / "wake.hdf5", "a") as file:
        times = file["dimensions/time"][:]
        del file["dimensions/time"]
        file["dimensions/time"] = np.tile(times, (3, 1))
    assert open_file(tmp_path / "wake.hdf5")["all"].time_step == 0.25


def test_netcdf4_names_its_axes_and_unpacks_its_numbers(tmp_path, public_files) -> None:
    packed = public_files.netcdf4(tmp_path / "weather.nc")
    data = open_file(tmp_path / "weather.nc")["all"]
    assert data.fields == ("pressure", "temperature")
    assert data.shape == (1, 6, 2, 4, 8)
    assert data.time_step == 3
    np.testing.assert_allclose(everything(data)[0][0, :, 1], 0.01 * packed + 280, rtol=1e-6)
    assert [axis.name for axis in data.axes] == ["lat", "lon"]
    assert data.axes[0].spacing == pytest.approx(40)
    assert data.notes == ("The file has no coordinates for lon: length 1 is assumed. Give --lengths.",)


def test_fill_values_of_netcdf_are_missing_numbers(tmp_path, public_files) -> None:
    public_files.netcdf4(tmp_path / "weather.nc")
    with h5py.File(tmp_path / "weather.nc", "a") as file:
        file["temperature"][2, 1, 3] = -9999
    data = open_file(tmp_path / "weather.nc")["all"]
    with pytest.raises(DataError, match="'temperature' is not finite in trajectory 0, frame 2"):
        data.read([0])
    assert data.read([0], finite=False).state.isnan().sum() == 1


@pytest.mark.parametrize("named", [np.array([-1], "<i2"), np.array([-1, -9998], "<i2"), -1.0, 1e20])
def test_either_number_that_netcdf_takes_for_none_is_missing(tmp_path, public_files, named) -> None:
    public_files.netcdf4(tmp_path / "weather.nc")
    with h5py.File(tmp_path / "weather.nc", "a") as file:
        file["temperature"].attrs["missing_value"] = named
        file["temperature"][:] = 5
        file["temperature"][2, 1, 3:6] = (-9999, -1, -9998)
    found = open_file(tmp_path / "weather.nc")["all"].read([0], finite=False).state.isnan()
    expected = [True, *(bool((np.atleast_1d(named) == number).any()) for number in (-1, -9998))]
    assert (found[0, 2, 1, 1, 3:6].tolist(), int(found.sum())) == (expected, sum(expected))


def test_classic_netcdf_reads_interleaved_records(tmp_path, public_files) -> None:
    values = public_files.netcdf3(tmp_path / "old.nc")
    data = open_file(tmp_path / "old.nc")["all"]
    state, _ = everything(data)
    np.testing.assert_array_equal(state[0, :, data.fields.index("u")], values)
    np.testing.assert_array_equal(state[0, :, data.fields.index("v")], -values)
    assert (data.time_step, data.axes[0].length) == (0.5, 16.0)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_archives_are_read_in_either_order_and_compression(tmp_path, save, order) -> None:
    values = np.asarray(np.random.default_rng(0).normal(size=(3, 4, 6, 2)), order=order)
    save(tmp_path / "mine.npz", u=values, nu=np.array([1.0, 2.0, 3.0]))
    options = ReadOptions(axes="batch time x channel", dt=0.5, lengths=(3.0,))
    data = open_file(tmp_path / "mine.npz", options)["all"].select(time_index=slice(1, None, 2))
    np.testing.assert_array_equal(everything(data)[0], values[:, 1::2].transpose(0, 1, 3, 2).astype(np.float32))
    assert (data.time_step, data.spacing, data.fields) == (1.0, (0.5,), ("u0", "u1"))
    assert data.parameters["nu"].tolist() == [1, 2, 3]


def test_an_npy_file_needs_only_axes(tmp_path) -> None:
    values = np.random.default_rng(0).normal(size=(2, 5, 4, 4, 4))
    np.save(tmp_path / "mine.npy", values)
    data = open_file(tmp_path / "mine.npy", ReadOptions(axes="batch time x y z"))["all"]
    np.testing.assert_array_equal(everything(data)[0][:, :, 0], values.astype(np.float32))
    assert data.fields == ("u",)
    assert [note.split(":")[0] for note in data.notes] == [
        "The file has no times",
        "The file has no coordinates for x, y, z",
    ]


def test_coordinate_arrays_name_the_axes_of_an_array(tmp_path) -> None:
    values = np.zeros((3, 5, 8, 7))
    np.savez(tmp_path / "mine.npz", u=values, t=0.1 * np.arange(5), x=np.arange(8.0), y=np.arange(7.0) + 0.5)
    data = open_file(tmp_path / "mine.npz")["all"]
    assert data.shape == (3, 5, 1, 8, 7)
    assert (data.time_step, data.axes[1].offset) == (pytest.approx(0.1), 0.5)


def test_several_arrays_are_several_fields_and_context_may_lack_axes(tmp_path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"u": rng.normal(size=(3, 5, 8)), "v": rng.normal(size=(3, 5, 8)), "f": rng.normal(size=(3, 8))}
    arrays |= {"drive": rng.normal(size=5), "nu": rng.normal(size=3), "bed": rng.normal(size=8)}
    np.savez(tmp_path / "mine.npz", **arrays)
    options = ReadOptions(axes="batch time x", arrays=("u", "v"), context=("f", "drive", "nu", "bed"), dt=1.0)
    data = open_file(tmp_path / "mine.npz", options)["all"]
    state, context = everything(data)
    assert (data.fields, data.context_fields) == (("u", "v"), ("f", "drive", "nu", "bed"))
    np.testing.assert_array_equal(state[:, :, 1], arrays["v"].astype(np.float32))
    np.testing.assert_array_equal(context[2, 3, 0], arrays["f"][2].astype(np.float32))
    np.testing.assert_array_equal(context[2, :, 1, 0], arrays["drive"].astype(np.float32))
    np.testing.assert_array_equal(context[:, 3, 2, 4], arrays["nu"].astype(np.float32))
    np.testing.assert_array_equal(context[1, 1, 3], arrays["bed"].astype(np.float32))


def test_channels_can_be_named_and_declared_known(tmp_path) -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 3))
    np.savez(tmp_path / "mine.npz", data=values, wind=np.ones((2, 3, 4, 3)))
    options = ReadOptions(axes="batch time x channel", arrays=("data",), fields=("a", "b", "c"), context=("b",))
    data = open_file(tmp_path / "mine.npz", options)["all"]
    state, context = everything(data)
    assert (data.fields, data.context_fields) == (("a", "c"), ("b",))
    np.testing.assert_array_equal(state[:, :, 1], values[..., 2].astype(np.float32))
    np.testing.assert_array_equal(context[:, :, 0], values[..., 1].astype(np.float32))
    wind = open_file(tmp_path / "mine.npz", ReadOptions(axes="b t x c", arrays=("data",), context=("wind",)))["all"]
    assert wind.context_fields == ("wind0", "wind1", "wind2")
    both = open_file(tmp_path / "mine.npz", ReadOptions(axes="b t x c"))["all"]
    assert both.fields == ("data0", "data1", "data2", "wind0", "wind1", "wind2")


def test_attributes_may_give_the_time_step(tmp_path) -> None:
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["run/u"] = np.zeros((4, 8))
        file["run/u"].attrs["dt"] = 0.25
    data = open_file(tmp_path / "mine.h5", ReadOptions(axes="time x"))["all"]
    assert (data.time_step, data.fields) == (0.25, ("u",))


def test_hdf5_labels_name_axes(tmp_path) -> None:
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["u"] = np.zeros((3, 4, 8))
        for axis, label in enumerate(("sample", "t", "x")):
            file["u"].dims[axis].label = label
    assert open_file(tmp_path / "mine.h5")["all"].shape == (3, 4, 1, 8)


ARRAYS = {"u": np.zeros((3, 5, 8)), "w": np.zeros((3, 5, 9)), "mask": np.zeros((2, 2))}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "holds several arrays that could be the state: u .*Choose with --arrays NAME"),
        ({"arrays": ("u",)}, r"The axes of 'u' in .*, of shape \(3, 5, 8\), have no names"),
        ({"arrays": ("uu",)}, "has no array 'uu'; it has u, w, mask. Did you mean `u`"),
        ({"axes": "b t x y"}, "has no array with 4 axes. It holds: u"),
        ({"axes": "b t x", "arrays": ("u", "w")}, "has 9 points along x, but 'u' in"),
        ({"axes": "t x", "arrays": ("u",)}, r"`axes` names 2 axes \(time x\) but 'u' in"),
        ({"axes": "b t x", "arrays": ("u",), "fields": ("a", "b")}, "has 1 channels, but `fields` names"),
        ({"axes": "b t x", "arrays": ("u",), "context": ("u",)}, "No field to predict"),
        (
            {"axes": "b t x", "arrays": ("u",), "context": ("mask",)},
            r"has shape \(2, 2\), which does not fit \(3, 5, 8\)",
        ),
        ({"axes": "b t x", "arrays": ("u",), "viscosity": 1.0}, "'arrays', which does not take `viscosity`"),
    ],
)
def test_files_that_need_a_word_from_the_user_say_which(tmp_path, options, message) -> None:
    np.savez(tmp_path / "mine.npz", **ARRAYS)
    with pytest.raises(DataError, match=message):
        open_file(tmp_path / "mine.npz", ReadOptions(**options))


def test_a_file_without_fields_says_what_it_holds(tmp_path) -> None:
    np.savez(tmp_path / "mine.npz", names=np.array(["a", "b"]), dt=np.array(0.1))
    with pytest.raises(DataError, match=r"nothing that can be read as trajectories; it holds: dt \(\) float64; names"):
        open_file(tmp_path / "mine.npz")


def test_uneven_coordinates_ask_for_lengths(tmp_path) -> None:
    np.savez(tmp_path / "mine.npz", u=np.zeros((5, 8)), t=np.arange(5.0), x=np.arange(8.0) ** 2)
    with pytest.raises(DataError, match="is not uniform.* Give --lengths to use the points as equally spaced"):
        open_file(tmp_path / "mine.npz")
    assert open_file(tmp_path / "mine.npz", ReadOptions(lengths=(8.0,)))["all"].spacing == (1.0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "`dt` must be a positive number, got 0.0"),
        ({"lengths": (1.0, -1.0)}, "`lengths` must be positive numbers"),
    ],
)
def test_impossible_options_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        ReadOptions(**options)
