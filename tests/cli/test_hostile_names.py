"""Names inside a file choose no path, no formula and no terminal escape, whichever command shows them."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from ssno.cli.main import main
from ssno.data.convert import convert_data
from ssno.data.trajectories import Trajectories

FIELDS = ["u$^$", "[/red]\x1b[2J\u202e"]
QUICK = ["--animation.width", "100", "--animation.format", "gif"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, beside one that the dataset's name points to."""
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def hostile_data(home: Path, n_dims: int) -> None:
    array = np.random.default_rng(0).normal(size=(10, 6, 2, *[16] * n_dims)).astype(np.float32)
    data = Trajectories.from_array(array, lengths=[1.0] * n_dims, fields=FIELDS, dt=0.5)
    convert_data({"train": data, "valid": data, "test": data}, home / "mine", source="x")
    for file in (home / "mine").rglob("*.hdf5"):
        with h5py.File(file, "r+") as opened:
            opened.attrs["dataset_name"] = str(home.parent / "elsewhere" / "$_{[bold]\x1b]0;")


def check(home: Path, printed: str) -> None:
    assert not list((home.parent / "elsewhere").iterdir())
    assert not {letter for letter in printed if not letter.isprintable() and letter not in "\n\t"}


@pytest.mark.parametrize("n_dims", [1, 2])
def test_names_in_data_are_only_shown(n_dims: int, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile_data(home, n_dims)
    main(["data", "inspect", "mine"])
    assert "[/red]\\x1b" in capsys.readouterr().out
    main(["data", "animate", "mine", *QUICK])
    written = capsys.readouterr().out.splitlines()
    assert [Path(path).parent for path in written] == [Path("animations")] * 2
    check(home, "".join(written))


def test_names_reach_a_run_and_its_pages_as_they_are(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile_data(home, 1)
    main(["train", "mine", "--model", "ssno:tiny", "--train.epochs", "1", "--name", "run"])
    main(["rollout", "runs/run", *QUICK])
    assert len(list((home / "runs" / "run" / "rollout").iterdir())) == 5
    main(["evaluate", "runs/run"])
    main(["evaluate", "runs/run", "--data", "mine", "--split", "valid"])
    main(["report", "runs/run"])
    main(["inspect", "runs/run"])
    told = capsys.readouterr()
    check(home, told.out + told.err)
    main(["data", "convert", "mine", "again"])
    with pytest.raises(SystemExit):
        main(["data", "inspect", "mine", "--fields", "a\x1b[2J", "b", "c"])
    told = capsys.readouterr()
    check(home, told.out + told.err)
