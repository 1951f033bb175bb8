"""Times of users' files: found, chosen, resampled, or refused with the remedy."""

import h5py
import numpy as np
import pytest
from tests.data.own_files import VALUES, grouped, ramps, save

from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.inspection import inspect_data
from ssno.data.readers.registry import ReadOptions


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


def test_times_that_a_model_cannot_step_are_refused_with_the_remedy(tmp_path) -> None:
    options = {"axes": "batch time y x", "arrays": ("u",)}
    path = save(tmp_path / "a.npz", time=np.array([0.0, 1, 2, 4, 8, 16]))
    with pytest.raises(DataError, match="is not uniform: .* give --resample STEP to interpolate"):
        load_dataset(path, **options)
    assert load_dataset(path, "all", **options, dt=1.0).time_step == 1.0
    clocks = np.arange(6) * np.linspace(1, 2, 5)[:, None]
    with pytest.raises(DataError, match="'time' in .* has other times for other trajectories"):
        load_dataset(save(tmp_path / "b.npz", time=clocks), **options)
    same = save(tmp_path / "c.npz", time=np.tile(0.25 * np.arange(6), (5, 1)))
    assert load_dataset(same, "all", **options).time_step == 0.25


@pytest.mark.parametrize("shared", [False, True])
def test_frames_at_odd_times_are_resampled_on_request(tmp_path, shared) -> None:
    rng = np.random.default_rng(0)
    clocks = np.cumsum(rng.uniform(0.05, 0.15, (3, 30)), axis=1)
    clocks = np.broadcast_to(clocks[:1], clocks.shape) if shared else clocks
    np.savez(tmp_path / "odd.npz", u=ramps(clocks), time=clocks[0] if shared else clocks)
    data = load_dataset(tmp_path / "odd.npz", "all", axes="batch time x", resample=0.2)
    assert data.times[-1] <= (clocks[:, -1] - clocks[:, 0]).min() < data.times[-1] + 0.2
    expected = ramps(np.broadcast_to(data.times, (3, len(data.times))))
    np.testing.assert_allclose(data.read(range(3)).state[:, :, 0], expected, atol=1e-5)
    part = data.select(time_index=slice(2, 9, 3), indices=[2, 0])  # frames in the middle, trajectories in another order
    np.testing.assert_allclose(part.read(range(2)).state[:, :, 0], expected[[2, 0], 2:9:3], atol=1e-5)


def test_stored_frames_survive_resampling_beside_gaps(tmp_path) -> None:
    values = ramps(np.array([[0.0, 1.0, 2.0, 4.0]]))
    values[0, 1] = np.nan
    np.savez(tmp_path / "gap.npz", u=values, time=[0.0, 1.0, 2.0, 4.0])
    state = load_dataset(tmp_path / "gap.npz", "all", axes="batch time x", resample=2.0).read([0]).state
    assert state.isfinite().all()


def test_resampling_is_refused_where_it_cannot_be(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", u=VALUES[:, :, :, 0], time=np.arange(6.0))
    np.savez(tmp_path / "none.npz", u=VALUES[:, :, :, 0])
    np.savez(tmp_path / "back.npz", u=VALUES[:, :, :, 0], time=[0, 1, 3, 2, 4, 5])
    for name, step, message in (
        ("a", 50.0, "`resample=50` exceeds the shortest trajectory, 5. Choose a smaller step"),
        ("a", 1e-9, "`resample=1e-09` makes 5000000001 frames of 5. Choose a larger step"),
        ("none", 1.0, "has no times to resample"),
        ("back", 1.0, "must be finite and increasing"),
    ):
        with pytest.raises(DataError, match=message):
            load_dataset(tmp_path / f"{name}.npz", "all", axes="batch time x", resample=step)
    with pytest.raises(ValueError, match="`resample` must be a positive number"):
        load_dataset(tmp_path / "a.npz", "all", axes="batch time x", resample=0.0)
    with pytest.raises(ValueError, match=r"Give `dt` \(frames are equally spaced\) or `resample`"):
        load_dataset(tmp_path / "a.npz", "all", axes="batch time x", resample=1.0, dt=1.0)


def test_a_time_step_for_each_trajectory_is_a_known_field(tmp_path) -> None:
    steps = np.array([0.1, 0.2, 0.4])
    np.savez(tmp_path / "steps.npz", u=VALUES[:3, :, :, 0], time=5 + steps[:, None] * np.arange(6))
    with pytest.raises(DataError, match="--context dt if each has a constant step of its own"):
        load_dataset(tmp_path / "steps.npz", "all", axes="batch time x")
    data = load_dataset(tmp_path / "steps.npz", "all", axes="batch time x", context=["dt"])
    assert data.context_fields == ("dt",)
    assert "Times count frames" in data.notes[0]
    known = data.read(range(3)).context
    np.testing.assert_allclose(known, np.broadcast_to(steps[:, None, None, None], known.shape), rtol=1e-6)


def test_a_coordinate_of_fitting_length_comes_before_one_time_too_many(tmp_path) -> None:
    """Nine times belong to nine frames, though there are eight points along y."""
    with h5py.File(tmp_path / "runs.h5", "w") as file:
        file["x"], file["y"] = np.arange(16) / 16, np.arange(8) / 8
        for run in range(3):
            file[f"run{run}/u"], file[f"run{run}/time"] = np.full((9, 16, 8), float(run)), 0.1 * np.arange(9)
    assert load_dataset(tmp_path / "runs.h5", "all").shape == (3, 9, 1, 16, 8)


def test_groups_of_other_lengths_are_resampled_to_the_shortest(tmp_path) -> None:
    clocks = [np.linspace(0, 1 + 0.1 * run, 5 + run) for run in range(11)]
    path = grouped(tmp_path / "runs.h5", clocks=clocks)
    with pytest.raises(DataError, match="cannot be joined"):
        load_dataset(path, "all", axes="time x")
    data = load_dataset(path, "all", axes="time x", resample=0.25)
    assert data.shape[:2] == (11, 5)
    np.testing.assert_allclose(data.read(range(11)).state[:, -1, 0, 0], np.arange(11.0), rtol=1e-6)


@pytest.mark.parametrize("name", ["step", "frames", "snapshot"])
def test_times_come_before_counts_of_steps(tmp_path, name) -> None:
    options = {"axes": "batch time x y", "arrays": "u"}
    counts = {name: 100 * np.arange(6)}
    both = save(tmp_path / "a.npz", **counts, time=0.01 * np.arange(6))
    assert load_dataset(both, "all", **options).time_step == pytest.approx(0.01)
    assert load_dataset(both, "all", **options, times=name).time_step == 100
    assert load_dataset(save(tmp_path / "b.npz", **counts), "all", **options).time_step == 100


def test_two_arrays_of_times_must_agree(tmp_path) -> None:
    options = {"axes": "batch time x y", "arrays": "u"}
    clock = 0.5 * np.arange(6)
    path = save(tmp_path / "a.npz", t=3600 * clock, time=clock)
    with pytest.raises(DataError, match="two arrays of times that differ, t and time. Choose with --times NAME"):
        load_dataset(path, "all", **options)
    assert load_dataset(path, "all", **options, times="time").time_step == 0.5
    assert load_dataset(path, "all", **options, dt=0.1).time_step == 0.1
    agreed = save(tmp_path / "b.npz", t=clock, time=np.tile(clock, (5, 1)))
    assert load_dataset(agreed, "all", **options).time_step == 0.5


def test_times_that_are_no_numbers_are_named(tmp_path) -> None:
    path = tmp_path / "clock.npz"
    np.savez(path, u=np.zeros((4, 5, 8)), t=np.array([0.0, 1.0, np.nan, 3.0, 4.0]))
    with pytest.raises(DataError, match="has times that are not finite. Give --dt"):
        load_dataset(path, "all", axes="batch time x")


@pytest.mark.parametrize(("period", "share"), [(1.0, "100"), (None, "0")], ids=["too fast", "a ramp"])
def test_inspecting_says_what_resampling_cuts(tmp_path, period, share) -> None:
    clocks = np.stack([0.25 * np.arange(33), 0.5 * np.arange(33)])
    values = clocks if period is None else np.sin(2 * np.pi * clocks / period)
    np.savez(tmp_path / "a.npz", u=np.repeat(values[:, :, None], 8, 2), t=clocks)
    options = ReadOptions(axes="batch time x", arrays=("u",), resample=0.5, lengths=(1.0,))
    (note,) = inspect_data(tmp_path / "a.npz", options)[0].notes
    assert note == (
        "Resampled every 0.5, 17 frames: 16 of 66 stored frames lie after the end of the shortest and are cut, "
        f"variations with periods under 1 are lost: {share} % of the energy of changes (first trajectory)."
    )
    still = ReadOptions(axes="batch time x", arrays=("u",), lengths=(1.0,), resample=0.5)
    np.savez(tmp_path / "b.npz", u=np.ones((2, 33, 8)), t=clocks)
    assert inspect_data(tmp_path / "b.npz", still)[0].notes[0].endswith("under 1 are lost."), "nothing changes"
