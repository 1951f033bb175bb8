"""CSV files: long format in any order, a file for each trajectory, matrices; errors name line and column."""

import os
from itertools import product

import numpy as np
import pytest

from ssno.cli.main import main
from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.registry import examine
from ssno.data.sandbox.csv_text import LARGEST, line_of, read_head, read_numbers
from ssno.data.units import PhysicalUnits

N, T, X, Y = 4, 5, 8, 6
U, V = np.random.default_rng(0).normal(size=(2, N, T, X, Y))
HEADER = "trajectory,time (s),x [m],y [m],u (m s-1),v,nu"


def long_lines(*, runs=range(N), seed=0) -> list[str]:
    """Every place of every frame on a line of its own, shuffled."""
    lines = [
        f"{n},{0.5 * t!r},{i / X!r},{j / 3!r},{float(U[n, t, i, j])!r},{float(V[n, t, i, j])!r},{0.1 * n!r}"
        for n, t, i, j in product(runs, range(T), range(X), range(Y))
    ]
    np.random.default_rng(seed).shuffle(lines)
    return lines


def write(path, lines, header=HEADER):
    path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return path


def test_lines_in_any_order_become_trajectories_with_units_and_parameters(tmp_path) -> None:
    data = load_dataset(write(tmp_path / "a.csv", long_lines()), "all")
    assert (data.fields, data.shape) == (("u", "v"), (N, T, 2, X, Y))
    np.testing.assert_allclose(data.read(slice(None)).state, np.stack([U, V], 2), rtol=1e-6)
    assert (data.time_step, [axis.length for axis in data.axes]) == (0.5, [1.0, 2.0])
    np.testing.assert_allclose(data.parameters["nu"], [0.0, 0.1, 0.2, 0.3])
    assert data.units == PhysicalUnits({"u": "m s-1"}, {"x": "m", "y": "m"}, "s")


def test_columns_are_chosen_and_known_as_arrays_are(tmp_path) -> None:
    data = load_dataset(
        write(tmp_path / "a.csv", long_lines()), "all", arrays="u", context=["v", "nu"], dt=0.1, periodic="x"
    )
    assert (data.fields, data.context_fields, data.time_step) == (("u",), ("v", "nu"), 0.1)
    assert [axis.periodic for axis in data.axes] == [True, False]
    np.testing.assert_allclose(data.read([2]).context[0, :, 1], 0.2)


def test_a_folder_with_a_file_for_each_trajectory_is_one_set_for_every_command(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for run in range(N):
        lines = [line.split(",", 1)[1] for line in long_lines(runs=[run], seed=run)]
        write(tmp_path / "runs" / f"run_{run}.csv", lines, HEADER.split(",", 1)[1])
    data = load_dataset("runs", "all")
    np.testing.assert_allclose(data.read(slice(None)).state, np.stack([U, V], 2), rtol=1e-6)
    np.testing.assert_allclose(data.parameters["nu"], [0.0, 0.1, 0.2, 0.3])
    main(["data", "inspect", "runs", "--no-draw"])
    assert "--data.context nu" in capsys.readouterr().out
    main(["data", "convert", "runs", "out", "--splits", "2", "1", "1"])
    assert load_dataset("out", "test").units.fields == {"u": "m s-1"}


def test_trajectories_with_times_of_their_own_can_be_resampled(tmp_path) -> None:
    lines = [f"{n},{(n + 1) * t},{i},{i + t}" for n, t, i in product(range(2), range(5), range(4))]
    path = write(tmp_path / "a.csv", lines, "run,time,x,u")
    with pytest.raises(DataError, match="other times for other trajectories"):
        load_dataset(path, "all")
    assert load_dataset(path, "all", resample=1.0).shape == (2, 5, 1, 4)


def test_columns_of_other_names_are_said_and_gaps_become_a_mask(tmp_path) -> None:
    lines = [f"{t};{i};{'NA' if i == 3 else i + t}" for t, i in product(range(6), range(8))]
    path = write(tmp_path / "a.csv", lines, "clock_s;height;u")
    data = load_dataset(path, "all", times="clock_s", coordinates="height", mask="nan")
    assert ([axis.name for axis in data.axes], data.context_fields) == (["height"], ("mask",))
    assert data.read([0]).context[0, 0, 0].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    with pytest.raises(DataError, match="'u' is not finite .* --mask nan"):
        load_dataset(path, "all", times="clock_s", coordinates="height").read([0])


def test_numbers_without_names_are_a_matrix_and_places_may_be_names(tmp_path) -> None:
    values = np.arange(48.0).reshape(6, 8)
    np.savetxt(tmp_path / "a.csv", values, delimiter=",")
    assert load_dataset(tmp_path / "a.csv", "all", axes="time x", dt=0.1).shape == (1, 6, 1, 8)
    places = ",".join(["time", *(f"{0.5 * i}" for i in range(8))])
    np.savetxt(tmp_path / "b.csv", np.c_[np.arange(6) / 4, values], delimiter=",", header=places)
    data = load_dataset(tmp_path / "b.csv", "all")
    assert (data.fields, data.time_step, data.axes[0].length) == (("u",), 0.25, 4.0)
    np.testing.assert_array_equal(data.read([0]).state[0, :, 0], values)


def test_names_may_stand_in_a_comment_and_marks_at_the_beginning_do_no_harm(tmp_path) -> None:
    np.savetxt(tmp_path / "a.tsv", np.zeros((4, 3)), delimiter="\t", header="time\tx\tu")
    assert read_head(tmp_path / "a.tsv").names == ("time", "x", "u")
    (tmp_path / "b.csv").write_bytes(b'\xef\xbb\xbf"time",x,"u"\r\n0,0,1\r\n\r\n# more\r\n0,1,2\r\n')
    head = read_head(tmp_path / "b.csv")
    assert (head.names, read_numbers(tmp_path / "b.csv").tolist()) == (("time", "x", "u"), [[0, 0, 1], [0, 1, 2]])
    assert line_of(tmp_path / "b.csv", 1) == 5


GRID = [f"{t},{x},{t + x}" for t, x in product(range(3), range(4))]


@pytest.mark.parametrize(
    ("header", "lines", "message"),
    [
        ("time,x,u", [*GRID[:4], "1,0,abc", *GRID[5:]], r"a\.csv, line 6, column u: 'abc' is not a number"),
        ("time,x,u", [*GRID[:4], "1,0", *GRID[5:]], r"line 6: 2 cells, but the first line has 3"),
        ("time,x,u", [*GRID, "2,3,9"], r"line 14: a second line for trajectory 0, time 2, x 3"),
        ("time,x,u", GRID[:-1], r"has no line for trajectory 0, time 2, x 3: .* --mask nan"),
        ("time,x,u", [*GRID[:4], "1,,4", *GRID[5:]], r"line 6, column x: a place or time is missing"),
        ("time,x,u", [], "has no numbers"),
        ("time,x,x", GRID, r"line 1, column 3: the name 'x' occurs twice"),
        ("time,x,", GRID, r"line 1, column 3: the name '' is empty or too long"),
        ("clock,x,u", GRID, "has the columns clock, x, u, but one for the time must be among them"),
        ("time,place,u", GRID, "one to three for places"),
        ("time,x,u", [f"{i},{i},1" for i in range(99)], "do not fill a regular grid"),
        ("run,time,x,u", ["0,0,0,1", "0,1,0,1", "1,0,0,1"], "trajectory 1 has 1 times, another has 2"),
    ],
)
def test_what_is_wrong_is_named_by_file_line_and_column(tmp_path, header, lines, message) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(write(tmp_path / "a.csv", lines, header), "all")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"time,x,u\n0,0,\xff\n", "not text in UTF-8"),
        (b"\0" * 100, "not a line of text"),
        (b"1," * 600_000, "longer than"),
        (b",".join(b"%d" % i for i in range(20_000)), "20000 columns, at most 10000 are read"),
        (b"# nothing\n\n", "has no numbers"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, content, message) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        examine(tmp_path / "a.csv")


def test_axes_are_not_said_about_columns_with_names(tmp_path) -> None:
    with pytest.raises(DataError, match="has named columns.*Leave --axes out"):
        load_dataset(write(tmp_path / "a.csv", long_lines()), "all", axes="batch time x")


def test_files_too_large_to_be_read_whole_are_refused_without_reading_them(tmp_path) -> None:
    path = write(tmp_path / "a.csv", GRID, "time,x,u")
    os.truncate(path, LARGEST + 1)  # sparse: no byte is written
    with pytest.raises(DataError, match="CSV files are read whole, up to 134217728. Store it as HDF5"):
        examine(path)


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path) -> None:
    path = write(tmp_path / "a.csv", GRID, "time,x,u")
    with pytest.raises(DataError, match="was changed after it was opened"):
        line_of(path, 12)
