"""`ssno data verify`: a table or JSON, and an exit code."""

import json
from pathlib import Path

import pytest
import tyro

from ssno.cli.data_files import verify
from ssno.data.datasets import Plan
from ssno.data.generation import generate
from ssno.pde.problems.heat import Heat


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generate(Plan(Heat(points=16, frames=3), {"train": 3, "test": 1}), tmp_path / "heat", jobs=1)
    return tmp_path / "heat"


def test_a_fine_dataset_ends_with_code_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tyro.cli(verify, args=[str(folder)])
    assert "heat: fine" in " ".join(capsys.readouterr().out.split())
    tyro.cli(verify, args=[str(folder), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert (result["fine"], result["shards"], result["trajectories"]["train"]) == (True, 2, 3)


def test_a_damaged_dataset_is_reported_and_ends_with_code_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "test/shard-000.h5").unlink()
    for flags in ([], ["--json"]):
        with pytest.raises(SystemExit) as leaving:
            tyro.cli(verify, args=[str(folder), *flags])
        assert leaving.value.code == 1
        assert "test/shard-000.h5" in capsys.readouterr().out
