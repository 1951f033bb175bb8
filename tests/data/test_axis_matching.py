"""Axes of arrays beside the state: by the names of dimensions, by lengths, or refused."""

import numpy as np
import pytest
from tests.data.own_files import EQUAL, VALUES, classic

from ssno.data.errors import DataError
from ssno.data.load import load_dataset


def test_names_of_dimensions_say_which_axes_a_known_field_has(tmp_path) -> None:
    arrays = {
        "u": (EQUAL, ("sample", "time", "x")),
        "nu": (EQUAL[0, 0], ("sample",)),
        "drive": (EQUAL[0, 0], ("time",)),
    }
    arrays |= {"force": (EQUAL[0], ("sample", "x")), "tide": (EQUAL[0], ("time", "x")), "bed": (EQUAL[0, 0], ("x",))}
    path = classic(tmp_path / "a.nc", arrays, sample=6, time=6, x=6)
    known = ("nu", "drive", "force", "tide", "bed")
    number, line = EQUAL[0, 0].astype(np.float32), EQUAL[0].astype(np.float32)
    for options in ({}, {"axes": "batch time y"}):  # the user's words for the axes of the state hold for all arrays
        data = load_dataset(path, "all", arrays="u", context=known, dt=0.1, lengths=(1.0,), **options)
        context = data.read(slice(None)).context.numpy()
        assert data.notes == ()
        for channel, expected in enumerate((number[:, None, None], number[:, None], line[:, None], line, number)):
            np.testing.assert_array_equal(context[:, :, channel], np.broadcast_to(expected, (6, 6, 6)))


@pytest.mark.parametrize("third", ["x", "x_of_v"])
def test_arrays_of_one_state_may_have_their_dimensions_in_another_order(tmp_path, third) -> None:
    u, v = VALUES[:, :, :4], VALUES[:, :, 4:].transpose(0, 1, 3, 2)
    arrays = {"u": (u, ("sample", "time", "x", "y")), "v": (v, ("sample", "time", "y", third))}
    arrays["h"] = (v[0, 0], ("y", "x"))
    path = classic(tmp_path / "a.nc", arrays, sample=5, time=6, x=4, y=4, x_of_v=4)
    data = load_dataset(path, "all", arrays=("u", "v"), context="h", dt=0.1, lengths=(1.0, 1.0))
    state, context = data.read(slice(None))
    np.testing.assert_array_equal(state[:, :, 0], u.astype(np.float32))
    np.testing.assert_array_equal(state[:, :, 1], v.transpose(0, 1, 3, 2).astype(np.float32))
    np.testing.assert_array_equal(context[3, 2, 0], v[0, 0].T.astype(np.float32))


def test_without_names_a_known_field_that_fits_several_axes_belongs_to_trajectories(tmp_path) -> None:
    numbers = np.arange(6.0)
    np.savez(tmp_path / "a.npz", u=EQUAL[:, :, :5], nu=numbers, force=EQUAL[:, :5, 0], time=0.5 * numbers)
    options = {"axes": "batch time x", "arrays": "u", "lengths": (1.0,)}
    data = load_dataset(tmp_path / "a.npz", "all", context=("nu", "force", "time"), **options)
    context = data.read(slice(None)).context
    np.testing.assert_array_equal(context[:, :, 0, 0], np.broadcast_to(numbers[:, None], (6, 6)))
    np.testing.assert_array_equal(context[:, 3, 1], EQUAL[:, :5, 0].astype(np.float32))
    np.testing.assert_array_equal(context[:, :, 2, 0], np.broadcast_to(0.5 * numbers, (6, 6)))  # called like its axis
    assert [note.split(" in ")[0] for note in data.notes] == ["'nu'", "'force'"]
    assert data.notes[0].endswith("fits (batch) and (time) by its shape (6,): it is read as (batch).")


def test_known_fields_whose_axes_stay_open_are_refused_with_the_remedy(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", u=EQUAL, force=EQUAL[0], full=EQUAL[:1], each=EQUAL[:, :1], bed=EQUAL[0, 0] > 0)
    options = {"axes": "batch time x", "arrays": "u", "dt": 0.1, "lengths": (1.0,)}
    message = r"'force' in .* has shape \(6, 6\), which fits \(batch time\) and \(batch x\) and \(time x\)"
    with pytest.raises(DataError, match=f"{message} .* of length 1 where it is constant"):
        load_dataset(tmp_path / "a.npz", context="force", **options)
    data = load_dataset(tmp_path / "a.npz", "all", context=("full", "each"), mask="bed", **options)
    context = data.read(slice(None)).context
    np.testing.assert_array_equal(context[4, :, 0], EQUAL[0].astype(np.float32))
    np.testing.assert_array_equal(context[:, 4, 1], EQUAL[:, 0].astype(np.float32))
    np.testing.assert_array_equal(context[4, 4, 2], EQUAL[0, 0] > 0)  # a mask is about points
