"""Public files of the fluid datasets, with every oddity, and what the task layout makes of them."""

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.registry import ReadOptions, examine, open_file, reader_for
from ssno.data.sandbox import parent as whole_arrays
from ssno.data.windows import Window, context_at_steps, dataset_conventions

LI = "NavierStokes_V1e-5_N1200_T20.mat"


def field(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("<f4")


def li_version_5(path, *, samples=5, points=6, frames=20, compressed=True, **more) -> np.ndarray:
    """(sample, x, y, time) float32 as `u`, the initial condition as `a`, times as a row."""
    u = field(samples, points, points, frames)
    times = {"t": np.arange(1.0, frames + 1)[None]}
    savemat(path, {"u": u, "a": field(samples, points, points), **times, **more}, do_compression=compressed)
    return u


def li_version_7_3(path, *, samples=5, points=6, frames=20) -> np.ndarray:
    """An HDF5 file behind a block of 512 bytes, all axes reversed, without `t`."""
    u = field(samples, points, points, frames)
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in (("u", u), ("a", field(samples, points, points))):
            file.create_dataset(name, data=values.T, chunks=True, compression="gzip")
            file[name].attrs["MATLAB_class"] = np.bytes_("single")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))
    return u


def fourierflow(path, *, drifts: bool, points=4, frames=200, counts=(3, 2, 2)) -> dict[str, dict[str, np.ndarray]]:
    """Three groups; the force with or without a time axis."""
    written = {}
    with h5py.File(path, "w") as file:
        for number, (split, n) in enumerate(zip(("train", "valid", "test"), counts, strict=True)):
            arrays = {
                "a": field(n, points, points, seed=number),
                "u": field(n, points, points, frames, seed=number + 10),
                "f": field(n, points, points, *([frames] if drifts else []), seed=number + 20),
                "mu": np.linspace(1e-5, 1e-4, n),
            }
            for name, values in arrays.items():
                file[f"{split}/{name}"] = values
            written[split] = arrays
    return written


def poseidon(path, *, samples, channels, frames, points=4, seed=0, name="solution") -> np.ndarray:
    """NetCDF-4: one variable with anonymous dimension scales."""
    values = field(samples, frames, channels, points, points, seed=seed)
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=values, chunks=(1, *values.shape[1:]))
        file.attrs["_NCProperties"] = "version=2,netcdf=4.9.0,hdf5=1.12.2"
    return values


def read(data) -> tuple[np.ndarray, np.ndarray]:
    frames = data.read(slice(None))
    return frames.state.numpy(), frames.context.numpy()


@pytest.mark.parametrize("compressed", [True, False])
def test_lis_version_5_files_are_read_in_matlabs_order(tmp_path, compressed) -> None:
    u = li_version_5(tmp_path / LI, compressed=compressed)
    assert reader_for(examine(tmp_path / LI)).name == "Navier-Stokes of Li et al."
    data = open_file(tmp_path / LI)["all"]
    np.testing.assert_array_equal(read(data)[0][:, :, 0], u.transpose(0, 3, 1, 2))
    assert (data.name, data.fields, data.shape) == ("torus-li", ("vorticity",), (5, 20, 1, 6, 6))
    np.testing.assert_array_equal(data.times, np.arange(1, 21))
    assert (data.axes[0].length, data.axes[0].offset, data.axes[0].periodic) == (1.0, 0.0, True)
    assert data.parameters["viscosity"].tolist() == [1e-5] * 5
    assert "Frames start at t = 1" in data.notes[0]


def test_lis_version_7_3_files_have_all_axes_reversed(tmp_path) -> None:
    u = li_version_7_3(tmp_path / LI)
    data = open_file(tmp_path / LI)["all"]
    np.testing.assert_array_equal(read(data)[0][:, :, 0], u.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(data.times, np.arange(1, 21))
    np.testing.assert_array_equal(read(data.select(resolution=3, indices=[4, 1]))[0][:, :, 0, 1, 2], u[[4, 1], 2, 4])


def test_lis_other_files_are_not_called_torus_li(tmp_path) -> None:
    li_version_5(tmp_path / "NavierStokes_V1e-3_N5000_T50.mat", frames=50)
    data = open_file(tmp_path / "NavierStokes_V1e-3_N5000_T50.mat")["all"]
    assert (data.name, data.parameters["viscosity"][0]) == ("navier-stokes", 1e-3)
    li_version_7_3(tmp_path / "mine.mat")
    assert open_file(tmp_path / "mine.mat")["all"].parameters == {}
    assert open_file(tmp_path / "mine.mat", ReadOptions(viscosity=1e-4))["all"].name == "navier-stokes"


def test_lis_published_split_is_first_thousand_and_last_two_hundred(tmp_path) -> None:
    u = li_version_5(tmp_path / LI, samples=1200, points=2)
    for split, rows in (("train", slice(900)), ("valid", slice(900, 1000)), ("test", slice(1000, 1200))):
        np.testing.assert_array_equal(
            read(load_dataset(tmp_path / LI, split))[0][:, :, 0], u[rows].transpose(0, 3, 1, 2)
        )
    li_version_5(tmp_path / "few.mat", points=2)
    with pytest.raises(DataError, match="published split of 'torus-li' takes 1200 trajectories, .* has 5"):
        load_dataset(tmp_path / "few.mat", "train")


def test_damaged_and_foreign_matlab_files_are_refused(tmp_path, monkeypatch) -> None:
    li_version_5(tmp_path / "text.mat", note="not numbers")
    assert examine(tmp_path / "text.mat").refused["note"] == "is of MATLAB class 'char', not an array of numbers"
    savemat(tmp_path / "t.mat", {"u": field(2, 3, 3, 7), "a": field(2, 3, 3), "t": np.arange(20.0)})
    with pytest.raises(DataError, match="`t` has 20 entries for 7 frames"):
        open_file(tmp_path / "t.mat")
    whole = (tmp_path / "text.mat").read_bytes()
    for length, why in ((300, "a variable needs [0-9]+ bytes, the file has 300"), (132, "ends within a tag")):
        (tmp_path / f"{length}.mat").write_bytes(whole[:length])
        with pytest.raises(DataError, match=f"cannot be read as MATLAB, it is damaged or incomplete .*{why}"):
            open_file(tmp_path / f"{length}.mat")
    (tmp_path / "noise.mat").write_bytes(whole[:400] + bytes(60) + whole[460:])
    with pytest.raises(DataError, match="Cannot read 'u' in|cannot be read as MATLAB"):
        read(open_file(tmp_path / "noise.mat")["all"])
    data = open_file(tmp_path / "text.mat")["all"]
    monkeypatch.setattr(whole_arrays, "whole_limit", lambda stored: 100)
    with pytest.raises(DataError, match=r"can only be read whole .*Save it with -v7\.3"):
        read(data)


@pytest.mark.parametrize("drifts", [False, True])
def test_fourierflow_files_give_force_and_viscosity_as_known_fields(tmp_path, drifts) -> None:
    arrays = fourierflow(tmp_path / "torus.h5", drifts=drifts)
    assert reader_for(examine(tmp_path / "torus.h5")).name == "fourierflow on the torus"
    found = open_file(tmp_path / "torus.h5")
    assert list(found) == ["train", "valid", "test"]
    for split, data in found.items():
        state, context = read(data)
        assert data.name == ("torus-vis-force" if drifts else "torus-vis")
        assert data.context_fields == ("force", "viscosity")
        np.testing.assert_array_equal(state[:, :, 0], arrays[split]["u"].transpose(0, 3, 1, 2))
        force = arrays[split]["f"].transpose(0, 3, 1, 2) if drifts else arrays[split]["f"][:, None]
        np.testing.assert_array_equal(context[:, :, 0], np.broadcast_to(force, context[:, :, 0].shape))
        viscosity = arrays[split]["mu"].astype(np.float32)[:, None, None, None]
        np.testing.assert_array_equal(context[:, :, 1], np.broadcast_to(viscosity, context[:, :, 1].shape))
        np.testing.assert_allclose(data.parameters["viscosity"], arrays[split]["mu"])
        np.testing.assert_allclose(data.times, 0.1 * np.arange(1, 201))


def test_every_tenth_frame_is_used_and_the_force_is_that_of_the_target(tmp_path) -> None:
    """Frames at t = 0.1, 1.1, ..., 19.1; the slot that predicts frame n gets the force of frame n."""
    arrays = fourierflow(tmp_path / "torus_vis_force.h5", drifts=True)["train"]
    data = load_dataset(tmp_path / "torus_vis_force.h5", "train")
    np.testing.assert_allclose(data.times, np.arange(20) + 0.1)
    state, _ = read(data)
    np.testing.assert_array_equal(state[:, :, 0], arrays["u"][..., ::10].transpose(0, 3, 1, 2))
    frames = data.read([0])
    slots = context_at_steps(frames.context, dataset_conventions(data.name).context_time).numpy()
    plan = Window("first_k", 4).plan(20)
    assert (list(plan.input_frames), list(plan.predicted)) == ([0, 1, 2, 3], list(range(4, 20)))
    for target in plan.predicted:
        np.testing.assert_array_equal(slots[0, target - 1, 0], arrays["f"][0, :, :, 10 * target])
    later = load_dataset(tmp_path / "torus_vis_force.h5", "train", time_index=slice(9, None, 10))
    np.testing.assert_allclose(later.times, np.arange(1, 21))


def test_a_force_of_wrong_rank_is_refused(tmp_path) -> None:
    fourierflow(tmp_path / "a.h5", drifts=False)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        del file["train/f"]
        file["train/f"] = np.zeros((3, 4))
    with pytest.raises(DataError, match=r"has shape \(3, 4\), expected \(sample, x, y\) or \(sample, x, y, time\)"):
        open_file(tmp_path / "a.h5")


@pytest.mark.parametrize(
    ("channels", "frames", "name", "known", "step", "offset"),
    [
        (5, 21, "ce-rm", ("tracer",), 0.1, 0.125),
        (6, 11, "gce-rt", ("tracer", "potential"), 0.5, -0.375),
    ],
)
def test_poseidons_files_hold_the_known_fields_in_the_last_channels(
    tmp_path, channels, frames, name, known, step, offset
) -> None:
    values = poseidon(tmp_path / "flow.nc", samples=3, channels=channels, frames=frames)
    assert reader_for(examine(tmp_path / "flow.nc")).name == "Poseidon's compressible flows"
    data = open_file(tmp_path / "flow.nc")["all"]
    state, context = read(data)
    np.testing.assert_array_equal(state, values[:, :, :4])
    np.testing.assert_array_equal(context, values[:, :, 4:])
    assert (data.name, data.context_fields, data.time_step) == (name, known, pytest.approx(step))
    assert data.fields == ("density", "velocity_x", "velocity_y", "pressure")
    assert (data.axes[0].length, data.axes[0].offset) == (1.0, offset)


def test_chunks_are_joined_in_the_order_of_their_numbers(tmp_path) -> None:
    """`solution_10` comes after `solution_2`; other files of the folder do not matter."""
    values = [poseidon(tmp_path / f"solution_{n}.nc", samples=2, channels=6, frames=11, seed=n) for n in (0, 1, 2, 10)]
    (tmp_path / "assemble_data.py").write_text("")
    data = load_dataset(tmp_path, "all")
    np.testing.assert_array_equal(read(data)[0], np.concatenate(values)[:, :, :4])
    poseidon(tmp_path / "solution_3.nc", samples=2, channels=5, frames=21)
    with pytest.raises(DataError, match="These files cannot be joined"):
        load_dataset(tmp_path, "all")


def test_splits_of_the_paper_and_of_poseidon(tmp_path) -> None:
    for n in (0, 1):
        poseidon(tmp_path / f"solution_{n}.nc", samples=630, channels=5, frames=21, points=2, seed=n)
    counts = {split: len(load_dataset(tmp_path, split)) for split in ("train", "valid", "test", "all")}
    assert counts == {"train": 900, "valid": 100, "test": 200, "all": 1260}
    everything = read(load_dataset(tmp_path, "all"))[0]
    np.testing.assert_array_equal(read(load_dataset(tmp_path, "test"))[0], everything[1060:])
    own = {split: read(load_dataset(tmp_path, split, splits=(1030, 100, 130)))[0] for split in ("valid", "test")}
    np.testing.assert_array_equal(own["valid"], everything[1030:1130])
    np.testing.assert_array_equal(own["test"], everything[1130:])


def test_the_tracer_of_the_state_is_known_and_the_state_is_not(tmp_path) -> None:
    """Frames 0, 2, 4, 6 are given and 8 ... 20 predicted; context holds no predicted channel of any frame."""
    values = poseidon(tmp_path / "CE-RM.nc", samples=2, channels=5, frames=21)
    data = load_dataset(tmp_path / "CE-RM.nc", "all")
    np.testing.assert_allclose(data.times, 0.2 * np.arange(11))
    frames = data.read([0, 1])
    plan = Window("first_k", 4).plan(11)
    assert ([2 * i for i in plan.input_frames], [2 * i for i in plan.predicted]) == (
        [0, 2, 4, 6],
        list(range(8, 21, 2)),
    )
    slots = context_at_steps(frames.context, dataset_conventions("ce-rm").context_time).numpy()
    np.testing.assert_array_equal(slots[:, :, 0], values[:, 0:20:2, 4])
    assert slots.shape[2] == 1


def test_files_with_energy_in_channel_four_are_not_taken_for_these(tmp_path) -> None:
    poseidon(tmp_path / "CE-RP.nc", samples=2, channels=5, frames=4, name="data")
    assert reader_for(examine(tmp_path / "CE-RP.nc")).name != "Poseidon's compressible flows"


def test_generated_fluids_are_taken_whole(tmp_path) -> None:
    """Our own files hold only the frames that are used: none is left out."""
    assert dataset_conventions("torus-vis").frames_of(20) == slice(None)
    assert dataset_conventions("ce-rm").frames_of(11) == slice(None)
    assert dataset_conventions("ce-rm").frames_of(21) == slice(0, None, 2)
