"""`ssno data generate`: flags come from the problems, mistakes are named, results can be read by programs."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
import tyro

from ssno.cli import data_generate
from ssno.cli.data_generate import generate
from ssno.cli.options import parse_part
from ssno.data.datasets import DATASETS
from ssno.data.manifest import read_manifest, verify
from ssno.data.solve_shards import GenerationFailed

OPTIONS = {"resolution": 16, "frames": 3, "waves": 2, "lmax": 3, "train": 5, "valid": 2, "test": 0, "jobs": 1}
SMALL = [text for name, value in OPTIONS.items() for text in (f"--{name}", str(value))]


def run(*arguments: str) -> None:
    tyro.cli(generate, args=list(arguments))


def test_a_dataset_is_made_from_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("heat", *SMALL, "--out", str(tmp_path / "heat"), "--seed", "7", "--per-shard", "2", "--batch", "3", "--json")
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["complete"], result["made"], result["missing"]) == (True, 4, 0)
    assert "7 trajectories in 4 files" in printed.err
    assert "heat: 100 %" in printed.err
    described = read_manifest(tmp_path / "heat")["recipe"]
    assert (described["seed"], described["per_shard"], described["counts"]) == (
        7,
        2,
        {"train": 5, "valid": 2, "test": 0},
    )
    assert (described["options"]["points"], described["options"]["frames"]) == (16, 3)
    assert verify(tmp_path / "heat").fine


def test_folders_are_named_after_dataset_and_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("advection-diffusion", "--preset", "tiny", "--velocity", "1.0", "0.5", "--resolution", "16", "--jobs", "1")
    assert os.listdir(tmp_path / "data") == ["advection-diffusion-tiny"]
    assert read_manifest(tmp_path / "data/advection-diffusion-tiny")["recipe"]["options"]["velocity"] == [1.0, 0.5]
    assert "complete" in capsys.readouterr().out


def test_parts_say_what_is_missing_and_the_last_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("heat", *SMALL, "--out", str(tmp_path / "heat"), "--per-shard", "2")
    run(*flags, "--shard", "1/2")
    assert "2 files are missing" in capsys.readouterr().out
    run(*flags, "--shard", "2/2")
    assert "complete; check it with" in capsys.readouterr().out
    run(*flags)
    assert "nothing left to generate" in capsys.readouterr().err


def test_a_dry_run_forecasts_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("heat", *SMALL, "--out", str(tmp_path / "heat"), "--dry-run", "--json")
    forecast = json.loads(capsys.readouterr().out)["forecast"]
    assert (forecast["trajectories"], forecast["shards"]) == (7, 2)
    assert min(forecast["seconds"], forecast["disk_bytes"], forecast["memory_bytes"]) > 0
    run("heat", *SMALL, "--out", str(tmp_path / "heat"), "--dry-run")
    assert "nothing written" in capsys.readouterr().out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", DATASETS)
def test_every_option_of_a_problem_is_a_flag(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        run(name, "--help")
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    for option in dataclasses.fields(DATASETS[name].problem):  # type: ignore[arg-type]
        flag = "resolution" if option.name == "points" else option.name.replace("_", "-")
        assert f"--{flag} " in text


def test_presets_change_defaults_and_the_help_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("burgers", "--help")
    assert "(default: 141; tiny: 41)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("ks", "--viscosty", "0.1"), "--viscosity"),
        (("burger",), "burgers"),
        (("ks", "--preset", "huge"), "tiny"),
    ],
)
def test_unknown_names_are_refused_with_the_right_ones(
    arguments: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leaving:
        run(*arguments)
    assert leaving.value.code == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("text", ["2", "a/b", "1/2/3", "-1/2", ""])
def test_parts_must_be_two_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="`shard` must be i/n with 1 <= i <= n, as 2/4, got"):
        parse_part(text)


def test_a_failed_generation_ends_with_its_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise GenerationFailed("Trajectory 3 of `train` is no longer finite")

    monkeypatch.setattr(data_generate, "generate_dataset", fail)
    with pytest.raises(SystemExit, match="ssno: Trajectory 3 of `train`"):
        run("heat", "--out", str(tmp_path / "heat"))


def test_ctrl_c_ends_quietly_and_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(data_generate, "generate_dataset", interrupt)
    with pytest.raises(SystemExit) as leaving:
        run("heat", "--out", str(tmp_path / "heat"))
    assert leaving.value.code == 130
    assert "run the same command again" in capsys.readouterr().err


@pytest.mark.parametrize("name", DATASETS)
def test_every_option_of_a_problem_has_a_line_of_help(name) -> None:
    problem = DATASETS[name].problem
    told = data_generate.option_help(problem)
    assert not [option.name for option in dataclasses.fields(problem) if len(told.get(option.name, "").split()) < 3]
