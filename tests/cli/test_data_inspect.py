"""`ssno data inspect` as a user calls it."""

import json
import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest
from matplotlib.image import imread
from tests.data.public_files import the_well

from ssno.cli.data_files import convert
from ssno.cli.data_inspect import inspect
from ssno.cli.main import main
from ssno.cli.predict import predict
from ssno.cli.train import parse
from ssno.data.sandbox.report import FORMATS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    values = np.random.default_rng(0).normal(size=(6, 5, 8))
    np.savez("mine.npz", u=values)
    values[2] = values[1]
    values[4, 3] = values[4, 2]
    values[3, 1, 1] = np.nan
    np.savez("bad.npz", u=values)
    return tmp_path


def test_a_file_without_names_is_listed_and_a_call_suggested(folder, capsys) -> None:
    main(["data", "inspect", "mine.npz"])
    printed = capsys.readouterr().out
    assert "mine.npz: not recognised (npz)" in printed
    assert "float64 (6, 5, 8)" in printed
    assert 'A guess, to be checked: ssno data inspect mine.npz --axes "batch time x"' in printed
    assert not (folder / "mine-inspect.png").exists()


def test_a_group_for_each_run_is_listed_once_and_a_call_for_all_is_suggested(folder, capsys) -> None:
    with h5py.File("runs.h5", "w") as file:
        for run in range(12):
            file[f"{run:04d}/data"], file[f"{run:04d}/grid/t"] = np.full((11, 8, 8, 2), run), np.arange(11.0)
    main(["data", "inspect", "runs.h5"])
    printed = capsys.readouterr().out
    assert "0000/data" in printed
    assert "0001/data" not in printed
    assert "11 more groups" in printed
    call = 'ssno data inspect runs.h5 --axes "time x y channel"'
    assert f"A guess, to be checked: {call}\n" in printed
    main([*call.split()[1:4], "--axes", "time x y channel", "--no-draw"])
    assert "runs: 12 trajectories of 11 frames, dt 1" in capsys.readouterr().out


def test_one_name_that_says_nothing_is_guessed_to_count_runs(folder, capsys) -> None:
    with h5py.File("named.h5", "w") as file:
        file["u"] = np.zeros((6, 9, 16, 8))
        for axis, name in enumerate(("widget", "time", "y", "x")):
            file["u"].dims[axis].label = name
    main(["data", "inspect", "named.h5"])
    assert 'ssno data inspect named.h5 --axes "batch time y x"' in capsys.readouterr().out


def test_a_guess_keeps_what_was_said(folder, capsys) -> None:
    np.savez("flow.npz", u=np.zeros((6, 5, 12, 8)), solid=np.zeros((12, 8)))
    main(["data", "inspect", "flow.npz", "--mask", "solid", "--dt", "0.1", "--periodic", "x"])
    call = 'flow.npz --arrays u --mask solid --dt 0.1 --periodic x --axes "batch time x y"'
    printed = capsys.readouterr().out
    assert f"A guess, to be checked: ssno data inspect {call}" in printed
    main(["data", "inspect", *shlex.split(call), "--no-draw"])
    assert "flow: 6 trajectories of 5 frames, dt 0.1" in capsys.readouterr().out


def test_a_folder_of_runs_is_called_so(folder, capsys) -> None:
    (folder / "runs").mkdir()
    for run in range(3):
        np.save(folder / "runs" / f"run_{run}.npy", np.full((5, 8), run))
    main(["data", "inspect", "runs", "--axes", "time x", "--no-draw"])
    assert "runs: folder of runs (folder)" in capsys.readouterr().out


def several(folder, write):
    """Twelve runs that differ in one number, each in a file of its own."""
    (folder / "runs").mkdir()
    for run in range(12):
        write(folder / "runs" / f"run_{run}", np.random.default_rng(run).normal(size=(9, 8)), 0.1 * run)


def channel_file(folder):
    """Periodic along x, a ramp between walls along y; viscosities, and seeds that mean nothing."""
    x, y = np.linspace(0, 1, 16, endpoint=False)[:, None], np.linspace(0, 1, 10)
    values = np.random.default_rng(0).normal(size=(12, 9, 1, 1)) * np.sin(2 * np.pi * x) + 5 * y
    numbers = {"nu": np.arange(12.0), "seed": np.arange(12), "--out": np.arange(12.0)}
    np.savez(folder / "file.npz", u=values, t=np.arange(9.0), x=x[:, 0], y=y, **numbers)
    return ["file.npz", "--data.context", "nu", "--data.periodic", "x"]


def npz_folder(folder):
    several(folder, lambda path, u, nu: np.savez(path.with_suffix(".npz"), u=u, nu=nu, dt=0.5, length=2.0))
    return ["runs", "--data.axes", "time x", "--data.context", "nu"]


def groups(folder):
    with h5py.File(folder / "file.h5", "w") as file:
        for run in range(12):
            file[f"run{run}/u"] = np.random.default_rng(run).normal(size=(9, 8))
            file[f"run{run}/t"], file[f"run{run}/x"] = np.arange(9.0), np.arange(8.0)
            file[f"run{run}/kill"], file[f"run{run}"].attrs["feed"] = 0.1 * run, 0.2 * run
    return ["file.h5", "--data.context", "kill", "feed"]


def nested(folder):
    with h5py.File(folder / "file.h5", "w") as file:
        file["fields/u"], file["numbers/nu"] = np.random.default_rng(0).normal(size=(12, 9, 8)), np.arange(12.0)
        file["t"], file["x"] = np.arange(9.0), np.arange(8.0)
    return ["file.h5", "--data.context", "nu"]


def land(folder):
    values = np.random.default_rng(0).normal(size=(12, 9, 8))
    values[:, :, 3] = np.nan
    np.savez(folder / "file.npz", u=values, t=np.arange(9.0), x=np.arange(8.0), nu=np.arange(12.0))
    return ["file.npz", "--data.context", "nu", "--data.mask", "nan"]


def well(folder):
    the_well(folder / "file.hdf5", samples=12, frames=6)
    return ["file.hdf5"]  # its parameters are no fields, so they cannot be known ones


@pytest.mark.parametrize("write", [channel_file, npz_folder, groups, nested, land, well])
def test_the_command_uses_what_was_found_and_can_be_called(tmp_path, monkeypatch, capsys, write) -> None:
    monkeypatch.chdir(tmp_path)
    expected = write(tmp_path)
    axes = ["--axes", "time x"] if write is npz_folder else []
    main(["data", "inspect", expected[0], *axes, "--no-draw", "--json"])
    words = shlex.split(json.loads(capsys.readouterr().out)["command"])
    assert words == ["ssno", "train", *expected]
    data = parse(words[2:]).run().data.load("train")
    assert len(data.read([0]).state) == 1
    used = expected[expected.index("--data.context") + 1 :] if "--data.context" in expected else []
    assert set(data.context_fields) >= {name for name in used if name in ("nu", "kill", "feed")}
    assert [axis.periodic for axis in data.axes] == ([True, False] if write in (channel_file, well) else [True])


def test_single_numbers_in_files_of_a_folder_are_listed_as_parameters(folder, capsys) -> None:
    npz_folder(folder)
    main(["data", "inspect", "runs", "--axes", "time x", "--no-draw"])
    printed = capsys.readouterr().out
    assert "12 trajectories of 9 frames, dt 0.5" in printed, "a number called dt is the time step"
    assert "parameters: length 2, nu 0 to 1.1" in printed


def test_masked_points_are_grey_in_the_picture(folder, capsys) -> None:
    solid = np.zeros((8, 8))
    solid[2:6, 2:6] = 1
    np.savez("flow.npz", u=np.random.default_rng(0).normal(size=(2, 5, 8, 8)), solid=solid)

    def grey(*mask: str) -> float:
        main(["data", "inspect", "flow.npz", "--arrays", "u", "--axes", "batch time x y", *mask])
        return float((np.abs(imread(folder / "flow-inspect.png")[..., :3] - 0.7) < 0.01).all(-1).mean())

    assert grey() < 0.01
    assert grey("--mask", "solid") > 0.05


def test_with_axes_it_is_described_drawn_and_the_training_command_printed(folder, capsys) -> None:
    main(["data", "inspect", "mine.npz", "--axes", "batch time x", "--dt", "0.1", "--lengths", "2"])
    printed = capsys.readouterr().out
    assert "mine: 6 trajectories of 5 frames, dt 0.1" in printed
    assert "x: 8 points, length 2, spacing 0.25, first at 0, periodic" in printed
    assert "Train on it: ssno train mine.npz --data.axes 'batch time x' --data.dt 0.1 --data.lengths 2.0" in printed
    picture = imread(folder / "mine-inspect.png")
    assert picture.std() > 0.05


def test_problems_are_named_with_their_trajectories(folder, capsys) -> None:
    arguments = ["--axes", "batch time x", "--no-draw", "--against", "mine.npz", "--periodic", "none", "--no-sample"]
    main(["data", "inspect", "bad.npz", *arguments])
    printed = capsys.readouterr().out.replace("\n", " ")
    assert "! all: 1 trajectories are not finite: 3. Gaps (land, obstacles) are read with --mask nan;" in printed
    assert "! all: 1 trajectories occur twice: 2 = 1" in printed
    assert "! all: 1 stand still for a step: 4" in printed
    assert "! all shares 29 frames with mine.npz:all, 5 trajectories entirely" in printed
    assert "* The file has no times: the step is taken as 1. Give --dt." in printed
    assert "bounded" in printed


def test_json_has_everything_and_nulls_instead_of_nan(folder, capsys) -> None:
    np.savez("nan.npz", u=np.full((2, 3, 4), np.nan))
    main(["data", "inspect", "nan.npz", "--axes", "batch time x", "--json", "--picture", "pictures/a.png"])
    found = json.loads(capsys.readouterr().out)
    assert found["sets"][0]["fields"][0]["low"] is None
    assert found["sets"][0]["not_finite"] == [0, 1]
    assert (found["format"], found["picture"]) == ("arrays", "pictures/a.png")
    assert (folder / "pictures" / "a.png").is_file()


def test_options_for_fields_context_arrays_and_viscosity_reach_the_reader(folder, capsys) -> None:
    np.savez("two.npz", u=np.random.default_rng(0).normal(size=(3, 5, 8, 2)), f=np.ones((3, 8)))
    options = ["--axes", "batch time x channel", "--arrays", "u", "--fields", "a", "b", "--context", "f", "--no-draw"]
    main(["data", "inspect", "two.npz", *options, "--json"])
    fields = json.loads(capsys.readouterr().out)["sets"][0]["fields"]
    assert [(field["name"], field["known"]) for field in fields] == [("a", False), ("b", False), ("f", True)]
    with h5py.File("KS_train.h5", "w") as file:
        group = file.create_group("train")
        group["pde_3-8"] = np.zeros((4, 3, 8))
        group["x"] = np.tile(np.arange(8.0), (4, 1))
        group["t"] = np.tile(np.arange(3.0), (4, 1))
    main(["data", "inspect", "KS_train.h5", "--viscosity", "0.2", "--no-draw"])
    assert "parameters: viscosity 0.2" in capsys.readouterr().out


def test_a_sampled_file_says_so(folder, capsys, monkeypatch) -> None:
    monkeypatch.setattr("ssno.cli.data_inspect.MOST", 4 * 5 * 8 * 4)
    main(["data", "inspect", "mine.npz", "--axes", "batch time x", "--no-draw"])
    assert "all: looked at 3 of 6 trajectories, 5 of 5 frames (--no-sample reads all)" in capsys.readouterr().out


def test_long_lists_are_cut_short(folder, capsys) -> None:
    values = np.tile(np.random.default_rng(0).normal(size=(1, 3, 8)), (20, 1, 1))
    np.savez("same.npz", u=values)
    main(["data", "inspect", "same.npz", "--axes", "batch time x", "--no-draw"])
    printed = capsys.readouterr().out.replace("\n", " ")
    assert "19 trajectories occur twice: 1 = 0" in printed
    assert "8 = 0, ..." in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.h5"], "There is no file none.h5"),
        (["mine.npz", "--axes", "batch tim x"], "did you mean 'time'"),
        (["mine.npz", "--axes", "batch time x", "--dt", "-1"], "`dt` must be a positive number"),
    ],
)
def test_mistakes_end_in_one_line_and_code_two(folder, capsys, arguments, message) -> None:
    if "tim" in " ".join(arguments).split():  # a file that cannot be read as asked is listed, with the reason
        main(["data", "inspect", *arguments])
        assert message in capsys.readouterr().out.replace("\n", " ")
        return
    with pytest.raises(SystemExit, match="2"):
        main(["data", "inspect", *arguments])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_a_picture_replaces_an_earlier_picture_and_nothing_else(folder, capsys, ending) -> None:
    call = ["data", "inspect", "mine.npz", "--axes", "batch time x", "--picture"]
    for _ in range(2):
        main([*call, f"drawn{ending}"])
    (folder / f"photo{ending}").write_bytes(b"of the sea")
    with pytest.raises(SystemExit) as stopped:
        main([*call, f"photo{ending}"])
    assert stopped.value.code == 2
    assert "is not a picture that ssno wrote, so `--picture` does not replace it" in capsys.readouterr().err
    assert (folder / f"photo{ending}").read_bytes() == b"of the sea"


def test_a_picture_has_the_name_of_a_picture(folder, capsys) -> None:
    before = (folder / "bad.npz").read_bytes()
    for name in ("bad.npz", "pic.xyz"):
        with pytest.raises(SystemExit) as stopped:
            main(["data", "inspect", "mine.npz", "--axes", "batch time x", "--picture", name])
        assert stopped.value.code == 2
        assert f"`--picture` must end in .png or .pdf or .svg, got '{name}'." in capsys.readouterr().err
    assert (folder / "bad.npz").read_bytes() == before


def test_names_stay_whole_in_a_table_of_80_columns(folder, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    small = 1e-7 * np.random.default_rng(0).normal(size=(4, 6, 2, 8))
    np.save(folder / "wide.npy", small)
    main(["data", "inspect", "wide.npy", "--axes", "batch time channel x", "--fields", "geopotential", "vorticity"])
    assert "geopotential" in capsys.readouterr().out


@pytest.mark.parametrize("where", [convert, inspect, predict, "docs/manual/own-data.md"])
def test_all_texts_list_the_same_file_formats(where) -> None:
    text = (Path(__file__).parents[2] / where).read_text() if isinstance(where, str) else where.__doc__
    assert f"file ({FORMATS}) or a Zarr store" in text or f"A file ({FORMATS}), a Zarr store" in text
