"""Units that files state: read from every format, carried by every view, written to every file of ours."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
from matplotlib.text import Text
from scipy.io import netcdf_file

from ssno.cli.main import main
from ssno.data.convert import convert_data, split_sets
from ssno.data.load import load_dataset
from ssno.data.readers.arrays import clean_unit, unit_of
from ssno.data.readers.registry import open_file
from ssno.data.trajectories import concatenate
from ssno.data.units import NO_UNITS, PhysicalUnits, labelled, measured, merged
from ssno.plots.curves import Band, error_bands, spectra
from ssno.plots.fields import gallery

STATED = PhysicalUnits({"u": "m s-1", "nu": "m2 s-1"}, {"x": "m"}, "s")
VALUES = np.random.default_rng(0).normal(size=(5, 6, 8))


@pytest.fixture
def classic(tmp_path):
    """A NetCDF file whose variables all have units."""
    with netcdf_file(tmp_path / "a.nc", "w") as file:
        for name, size in {"run": 5, "time": 6, "x": 8}.items():
            file.createDimension(name, size)
        for name, values, dims, unit in (
            ("u", VALUES, ("run", "time", "x"), "m s-1"),
            ("nu", np.arange(5.0), ("run",), "m2 s-1"),
            ("time", 0.5 * np.arange(6), ("time",), "s"),
            ("x", np.arange(8.0), ("x",), "m"),
        ):
            variable = file.createVariable(name, "f4", dims)
            variable[:], variable.units = values, unit
    return tmp_path / "a.nc"


@pytest.mark.parametrize(
    "stated",
    ["m", "m s-1", "kg m**-3", "m s^-1", "degrees_east", "°C", "µm", "%", "1/s", "N m⁻²", "K·m"],
)
def test_units_as_files_state_them_are_kept(stated):
    assert clean_unit(stated) == stated


@pytest.mark.parametrize(
    "stated",
    [
        "",
        "1",
        "Dimensionless",
        "$\\alpha$",
        "m\x1b[31m",
        "[red]m[/red]",
        "<b>m</b>",
        "m&s",
        "\u202em",
        "m" * 33,
        "\\frac",
    ],
)
def test_what_is_no_unit_or_could_be_markup_is_left_out(stated):
    assert clean_unit(stated) == ""


def test_of_a_calendar_the_unit_is_what_comes_before_since():
    assert clean_unit("days since 2000-01-01T00:00:00.000000") == "days"
    assert clean_unit(" m \n s-1 ") == "m s-1"


def test_attributes_may_be_a_list_of_one_text_or_no_text_at_all():
    assert [unit_of({"units": ["m"]}), unit_of({"unit": "K"}), unit_of({"units": 3.0}), unit_of({})] == [
        "m",
        "K",
        "",
        "",
    ]


def test_labels_have_the_unit_in_round_brackets():
    assert (STATED.field_label("u"), STATED.axis_label("x"), STATED.time_label) == ("u (m s-1)", "x (m)", "time (s)")
    assert (NO_UNITS.field_label("u"), NO_UNITS.axis_label("x"), NO_UNITS.time_label) == ("u", "x", "time")
    assert (labelled("a", ""), measured("3", "m"), measured("3", "")) == ("a", "3 m", "3")


def test_units_of_a_netcdf_file_stay_with_every_view(classic):
    data = load_dataset(classic, "all", context="nu")
    assert data.units == STATED
    assert data.select(resolution=4, time_index=slice(0, 4), indices=[0, 1]).cut(2).in_memory().units == STATED


def test_units_of_hdf5_attributes_are_read_and_user_given_steps_and_lengths_have_none(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, values, unit in (("u", VALUES, "K"), ("t", np.arange(6.0), "h"), ("x", np.arange(8.0), "km")):
            file[name] = values
            file[name].attrs["units"] = np.bytes_(unit)
    assert load_dataset(tmp_path / "a.h5", "all").units == PhysicalUnits({"u": "K"}, {"x": "km"}, "h")
    given = load_dataset(tmp_path / "a.h5", "all", axes="batch time x", arrays="u", dt=0.1, lengths=(1.0,))
    assert given.units == PhysicalUnits({"u": "K"})
    assert load_dataset(tmp_path / "a.h5", "all", resample=0.5).units.time == "h"
    assert load_dataset(tmp_path / "a.h5", "all", context="dt").units == PhysicalUnits(
        {"u": "K", "dt": "h"}, {"x": "km"}
    )


def test_converted_datasets_state_the_units_of_their_source(classic, tmp_path):
    convert_data(
        split_sets({"all": load_dataset(classic, "all", context="nu")}, (3, 1, 1)), tmp_path / "out", source="a.nc"
    )
    assert load_dataset(tmp_path / "out", "test").units == STATED
    with h5py.File(tmp_path / "out/train/shard-000.h5") as file:
        assert file["t0_fields/u"].attrs["units"] == "m s-1"


def test_units_stand_in_tables_and_pictures(classic, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    main(["data", "inspect", "a.nc", "--context", "nu", "--picture", "a.svg"])
    printed = capsys.readouterr().out
    assert "dt 0.5 s" in printed
    assert "x: 8 points, length 8 m, spacing 1 m, first at 0 m, periodic" in printed
    assert "u (m s-1)" in printed
    assert "nu (m2 s-1) (known)" in printed
    main(["data", "inspect", "a.nc", "--no-draw", "--json"])
    assert json.loads(capsys.readouterr().out)["units"] == {"fields": {"u": "m s-1"}, "axes": {"x": "m"}, "time": "s"}
    main(["data", "convert", "a.nc", "out", "--splits", "3", "1", "1", "--context", "nu"])
    assert "nu (m2 s-1)" in capsys.readouterr().out


def words_of(figure):
    return {text.get_text() for text in figure.findobj(Text)}


def test_units_stand_on_axes_of_pictures():
    frames = np.random.default_rng(0).normal(size=(1, 3, 1, 8))
    settings = {"fields": ["u"], "times": np.arange(3.0), "units": STATED}
    assert {"u (m s-1)\n\ntime (s)", "x (m)"} <= words_of(gallery(frames, lengths=[1.0], **settings))
    flat = gallery(np.stack([frames] * 8, -1), lengths=[1.0, 1.0], **settings)
    assert {"t = 2 s", "x (m)"} <= words_of(flat)
    waves = spectra(np.arange(4.0), {"truth": np.ones((3, 4))}, times=[0.0, 1.0, 2.0], time_unit="s", length_unit="m")
    assert {"wavenumber (rad / m)", "t = 1 s"} <= words_of(waves)
    errors = error_bands([1.0, 2.0], {"run": Band([1.0, 1.0], [1.0, 1.0], [1.0, 1.0])}, time_label=STATED.time_label)
    assert "time (s)" in words_of(errors)


def test_a_vector_of_the_well_has_one_unit_for_all_its_components(tmp_path, public_files):
    public_files.the_well(tmp_path / "well.hdf5")
    with h5py.File(tmp_path / "well.hdf5", "a") as file:
        file["t1_fields/velocity"].attrs["units"] = "m s-1"
        file["dimensions/x"].attrs["units"] = "m"
    units = open_file(tmp_path / "well.hdf5")["all"].units
    assert dict(units.fields) == {"velocity_x": "m s-1", "velocity_y": "m s-1"}
    assert units.axes == {"x": "m"}


def test_files_of_one_set_that_state_other_units_are_remarked_upon(classic):
    data = load_dataset(classic, "all", context="nu")
    other = replace(data, units=PhysicalUnits({"u": "km h-1"}, {}, "s"))
    joined = concatenate([data, other])
    assert joined.units == PhysicalUnits({"nu": "m2 s-1"}, {"x": "m"}, "s")
    assert "Files state other units for u: m s-1 and km h-1" in joined.notes[-1]
    assert merged([STATED, NO_UNITS]) == (STATED, [])
