"""Lazy views of trajectories: every view reads what slicing the whole array would give."""

import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.open_files import close_files

from ssno.data import trajectories
from ssno.data.errors import DataError
from ssno.data.grids import box
from ssno.data.readers.arrays import H5Array, Stamp
from ssno.data.readers.blocks import Block, Part, parse_pattern
from ssno.data.trajectories import Trajectories


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def stored(folder: Path, *arrays: np.ndarray) -> Trajectories:
    """Arrays (n, t, x) in HDF5 files, one part each."""
    parts = []
    for i, array in enumerate(arrays):
        path = folder / f"{i}.h5"
        with h5py.File(path, "w") as file:
            file["u"] = array
        stored_array = H5Array(Stamp.of(path), "u", array.shape, array.dtype.str)
        block = Block(stored_array, parse_pattern("batch time x"), ("x",))
        parts.append(Part((block,)))
    frames, points = arrays[0].shape[1:]
    parameters = {"n": np.arange(sum(len(array) for array in arrays))}
    return Trajectories.from_parts(
        parts,
        name="stored",
        fields=["u"],
        times=0.5 * np.arange(frames),
        axes=box("x", [points], lengths=[2.0]),
        parameters=parameters,
    )


def test_any_order_of_axes_gives_the_same_trajectories() -> None:
    values = numbers(3, 4, 2, 6, 5)
    expected = Trajectories.from_array(values).read(slice(None)).state
    assert torch.equal(expected, torch.from_numpy(values))
    for axes, order in (
        ("batch time x y channel", (0, 1, 3, 4, 2)),
        ("y x channel batch time", (4, 3, 2, 0, 1)),
        ("sample t c x y", (0, 1, 2, 3, 4)),
    ):
        view = Trajectories.from_array(values.transpose(order), axes=axes)
        assert torch.equal(view.read(slice(None)).state, expected)


@pytest.mark.parametrize(
    ("axes", "shape", "grid"),
    [
        ("time x", (4, 6), (6,)),
        ("time x channel", (4, 6, 2), (6,)),
        ("batch time x y", (3, 4, 6, 5), (6, 5)),
        ("time z y x", (4, 2, 5, 6), (6, 5, 2)),
        ("batch time 1 lat lon", (3, 4, 1, 5, 6), (5, 6)),
    ],
)
def test_missing_batch_and_channel_axes_have_length_one(axes, shape, grid) -> None:
    view = Trajectories.from_array(numbers(*shape), axes=axes)
    count = 3 if "batch" in axes else 1
    assert view.shape == (count, 4, 2 if "channel" in axes else 1, *grid)
    assert view.read([0]).state.shape == (1, *view.shape[1:])


def test_spacing_gives_the_lengths() -> None:
    view = Trajectories.from_array(numbers(1, 2, 1, 6, 5), spacing=(0.5, 2))
    assert [axis.length for axis in view.axes] == [3.0, 10.0]
    assert view.spacing == (0.5, 2.0)


def test_context_is_separated_by_name_and_repeated_in_time_when_constant() -> None:
    values = numbers(3, 4, 6, 3)
    view = Trajectories.from_array(
        values, axes="batch time x channel", fields=("f", "u", "g"), context_fields=("g", "f")
    )
    frames = view.read([2, 0])
    assert (view.fields, view.context_fields) == (("u",), ("g", "f"))
    np.testing.assert_array_equal(frames.state[:, :, 0], values[[2, 0], :, :, 1])
    np.testing.assert_array_equal(frames.context[:, :, 0], values[[2, 0], :, :, 2])
    np.testing.assert_array_equal(frames.context[:, :, 1], values[[2, 0], :, :, 0])


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 5),
    step=st.integers(1, 4),
    points=st.sampled_from([1, 2, 4, 8]),
    rows=st.lists(st.integers(-7, 6), min_size=1, max_size=9),
)
def test_a_view_of_files_reads_what_slicing_the_whole_array_gives(tmp_path_factory, start, step, points, rows) -> None:
    values = numbers(7, 9, 8)
    data = stored(tmp_path_factory.mktemp("views"), values[:3], values[3:])
    view = data.select(time_index=slice(start, None, step), resolution=points, indices=rows)
    expected = values[rows][:, start::step, :: 8 // points]
    np.testing.assert_array_equal(view.read(slice(None)).state[:, :, 0], expected)
    np.testing.assert_array_equal(view.parameters["n"], np.arange(7)[rows])
    np.testing.assert_allclose(view.times, 0.5 * np.arange(9)[start::step])
    assert view.spacing == (2.0 / points,)


def test_views_of_views_compose(tmp_path) -> None:
    values = numbers(5, 12, 16)
    data = stored(tmp_path, values)
    twice = data.select(time_index=slice(0, None, 2), resolution=8).select(time_index=[1, 2, 5], resolution=4)
    np.testing.assert_array_equal(twice.read([4]).state[:, :, 0], values[[4]][:, [2, 4, 10], ::4])
    averaged = data.select(resolution=8, reduction="mean").select(resolution=4)
    expected = values.reshape(5, 12, 8, 2).mean(-1)[:, :, ::2]
    np.testing.assert_allclose(averaged.read(slice(None)).state[:, :, 0], expected, atol=1e-6)
    assert averaged.axes[0].offset == pytest.approx(2.0 / 16 / 2)


def test_uneven_time_indices_are_read_in_order(tmp_path) -> None:
    values = numbers(2, 12, 4)
    view = stored(tmp_path, values).select(time_index=[0, 3, 9])
    np.testing.assert_array_equal(view.read(slice(None)).state[:, :, 0], values[:, [0, 3, 9]])
    with pytest.raises(DataError, match="the times of 'stored' is not uniform"):
        _ = view.time_step


def test_strides_are_handed_to_the_file_read(tmp_path, monkeypatch) -> None:
    seen = []
    original = H5Array.read
    monkeypatch.setattr(H5Array, "read", lambda self, selection: seen.append(selection) or original(self, selection))
    data = stored(tmp_path, numbers(5, 12, 16))
    data.select(time_index=slice(1, 12, 3), resolution=4).read([1, 2, 4])
    assert seen == [
        (slice(1, 3), slice(1, 11, 3), slice(None, None, 4)),
        (slice(4, 5), slice(1, 11, 3), slice(None, None, 4)),
    ]


def test_cutting_turns_one_long_run_into_many_short_ones(tmp_path) -> None:
    values = numbers(2, 11, 4)
    pieces = stored(tmp_path, values).cut(3)
    assert pieces.shape == (6, 3, 1, 4)
    expected = values[:, :9].reshape(6, 3, 4)
    np.testing.assert_array_equal(pieces.read(slice(None)).state[:, :, 0], expected)
    np.testing.assert_array_equal(pieces.read([4, 1]).state[:, :, 0], expected[[4, 1]])
    np.testing.assert_array_equal(pieces.parameters["n"], [0, 0, 0, 1, 1, 1])
    close_files()
    strided = stored(tmp_path, values).select(time_index=slice(1, None, 2)).cut(2)
    np.testing.assert_array_equal(strided.read([1]).state[0, :, 0], values[0, [5, 7]])


def test_a_pickled_view_reads_in_another_process_and_holds_no_file(tmp_path) -> None:
    values = numbers(3, 4, 8)
    data = stored(tmp_path, values)
    data.read([0])
    blob = pickle.dumps(data)
    assert len(blob) < 5000
    np.testing.assert_array_equal(pickle.loads(blob).read([2]).state[0, :, 0], values[2])


def test_loader_workers_read_the_same_numbers(tmp_path) -> None:
    values = numbers(8, 4, 8)
    data = stored(tmp_path, values)
    data.read([0])  # the parent has the file open when the workers are forked

    class Items(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(data)

        def __getitem__(self, n: int) -> torch.Tensor:
            return data.read([n]).state[0]

    loaded = torch.cat(list(torch.utils.data.DataLoader(Items(), batch_size=2, num_workers=2)))
    np.testing.assert_array_equal(loaded[:, :, 0], values)


def test_a_set_in_memory_is_the_same_set(tmp_path) -> None:
    data = stored(tmp_path, numbers(3, 4, 8)).select(resolution=4)
    kept = data.in_memory()
    close_files()
    for path in tmp_path.iterdir():
        path.unlink()
    assert kept.read([1]).state.shape == (1, 4, 1, 4)
    assert (kept.axes, kept.parameters["n"].tolist()) == (data.axes, [0, 1, 2])


def test_a_description_in_one_line() -> None:
    data = Trajectories.from_array(numbers(3, 4, 2, 6), fields=("u", "f"), context_fields=("f",))
    assert repr(data) == "Trajectories('array': 3 x 4 frames of u on 6, context f)"


def test_values_that_are_not_finite_are_reported_with_their_place(tmp_path) -> None:
    values = numbers(4, 6, 8)
    values[2, 3, 5] = np.nan
    data = stored(tmp_path, values)
    assert data.read([0, 1, 3]).state.isfinite().all()
    with pytest.raises(DataError, match="'u' is not finite in trajectory 2, frame 3 of 'u' in"):
        data.read(slice(None))
    assert data.read([2], finite=False).state.isnan().sum() == 1
    signalling = np.full((1, 2, 1, 4), 0x7FF0000000000001, np.uint64).view(np.float64)
    for beyond in (np.full((1, 2, 1, 4), 1e300), signalling):
        with pytest.raises(DataError, match="'u' is not finite in trajectory 0, frame 0"):
            Trajectories.from_array(beyond).read([0])


def test_numbers_of_any_real_type_come_out_as_float32() -> None:
    for dtype in (np.float16, np.float64, np.int16, np.uint8, ">f4", ">f8"):
        values = np.arange(24).reshape(1, 2, 3, 4).astype(dtype)
        state = Trajectories.from_array(values).read([0]).state
        assert state.dtype == torch.float32
        np.testing.assert_array_equal(state, np.arange(24).reshape(1, 2, 3, 4))


def test_reading_more_than_the_limit_is_refused_before_memory_is_taken() -> None:
    vast = np.broadcast_to(np.float32(0), (10**6, 10**4, 1, 10**4))
    with pytest.raises(DataError, match=r"takes 3.73e\+05 GiB, above the limit of 8 GiB"):
        Trajectories.from_array(vast).read(slice(None))


def test_a_file_that_changed_or_went_away_is_not_read(tmp_path) -> None:
    data = stored(tmp_path, numbers(3, 4, 8))
    data.read([0])
    with h5py.File(tmp_path / "new.h5", "w") as file:
        file["u"] = numbers(3, 4, 8) + 1
    (tmp_path / "new.h5").replace(tmp_path / "0.h5")
    with pytest.raises(DataError, match="was changed after it was opened"):
        data.read([0])
    (tmp_path / "0.h5").unlink()
    with pytest.raises(DataError, match="can no longer be read"):
        data.read([0])


def test_a_file_that_is_not_as_described_is_an_error_of_ours(tmp_path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["u"] = numbers(3, 4)
    everything = (slice(None), slice(None))
    with pytest.raises(DataError, match="Cannot read 'v' in"):
        H5Array(Stamp.of(path), "v", (3, 4), "<f4").read(everything)
    with pytest.raises(DataError, match=r"'u' in .* is no longer <f8 \(3, 4\)"):
        H5Array(Stamp.of(path), "u", (3, 4), "<f8").read(everything)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": "time x"}, r"names 2 axes \(time x\) but `array` has 4: \(2, 3, 2, 4\)"),
        ({"axes": "batch time 1 x"}, r"marks an axis of `array` with 1, but it has length 2"),
        ({"fields": ("u",)}, "`array` has 2 channels but 1 names were given"),
        ({"fields": ("u", "u")}, "Field names must differ"),
        ({"context_fields": ("f",)}, "Context field 'f' is not among the fields"),
        ({"context_fields": ("u0", "u1")}, "No field to predict"),
        ({"times": np.array([0.0, 1.0])}, "has 3 frames, but there are 2 times"),
        ({"times": np.array([0.0, 1.0, 1.0])}, "Times must be finite and increasing"),
        ({"lengths": (1.0, 2.0)}, r"`lengths` must have one number per space axis \('x',\)"),
        ({"spacing": (1.0, 2.0)}, r"Give `lengths` or `spacing`, one number per space axis \('x',\)"),
        ({"spacing": (1.0,), "lengths": (4.0,)}, "Give `lengths` or `spacing`"),
        ({"offsets": (1.0, 2.0)}, "`offsets` must have one number per space axis"),
        ({"parameters": {"nu": np.zeros(3)}}, r"Parameter 'nu' has shape \(3,\) for 2 trajectories"),
    ],
)
def test_an_array_that_does_not_fit_its_description_is_refused(options, message) -> None:
    with pytest.raises(DataError, match=message):
        Trajectories.from_array(numbers(2, 3, 2, 4), **options)


def test_other_impossible_requests_are_refused(tmp_path) -> None:
    with pytest.raises(DataError, match=r"`array` has shape \(3, 4\), expected \(batch, time, channel, x"):
        Trajectories.from_array(numbers(3, 4))
    with pytest.raises(DataError, match=r"`array` is empty along 'time': its shape is \(2, 0, 1, 4\)"):
        Trajectories.from_array(numbers(2, 0, 1, 4))
    with pytest.raises(DataError, match="has no time axis in 'batch x y channel'"):
        Trajectories.from_array(numbers(2, 3, 2, 4), axes="batch x y channel")
    data = stored(tmp_path, numbers(3, 4, 8))
    with pytest.raises(ValueError, match=r"`indices` must lie between -3 and 2, got \[3\]"):
        data.read([3])
    with pytest.raises(DataError, match=r"`time_index` must increase, got \[2, 1\]"):
        data.select(time_index=[2, 1])
    for none in (slice(5, 2), []):
        with pytest.raises(DataError, match=r"`time_index` must choose some of the \d+ frames, got"):
            data.select(time_index=none)
    with pytest.raises(DataError, match="`frames` must be between 2 and 4, got 5"):
        data.cut(5)
    with pytest.raises(DataError, match=r"the time index of a dataset to be cut is not uniform"):
        data.select(time_index=[0, 1, 3]).cut(2)


def test_indices_that_are_no_integers_are_refused(as_users_call_it) -> None:
    data = Trajectories.from_array(numbers(3, 4, 1, 8))
    for wrong in ([[0], [1]], [0.5], "a"):
        with pytest.raises(TypeError, match="`indices` must be a slice or a list of integers"):
            data.read(wrong)


def test_parts_that_do_not_belong_together_are_refused(tmp_path) -> None:
    with pytest.raises(DataError, match=r"1.h5 has the grid \(4,\), expected \(8,\)"):
        stored(tmp_path, numbers(3, 4, 8), numbers(3, 4, 4))
    with pytest.raises(DataError, match=r"1.h5 has 5 frames, but there are 4 times"):
        stored(tmp_path, numbers(3, 4, 8), numbers(3, 5, 8))
    part = stored(tmp_path, numbers(3, 4, 8)).parts[0]
    axes = box("x", [8])
    with pytest.raises(DataError, match=r"has 1 channels but 2 names"):
        Trajectories.from_parts([part], name="", fields=["u", "v"], times=np.arange(4.0), axes=axes)


def test_more_trajectories_than_memory_can_list_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(trajectories, "MOST", 3)
    with pytest.raises(DataError, match="has 4 trajectories, more than the 3 that are read. Check its `axes`"):
        Trajectories.from_array(np.zeros((4, 3, 8)), axes="batch time x")
