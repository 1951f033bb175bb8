"""A small piece of every part of `make verify`, so that none of them rots between two nights."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from verify.campaign import Part, Record, run_part
from verify.commands import Command, differences, unreadable
from verify.parts import parts

from ssno.native import operations
from ssno.runs.checkpoint import INDEX, Progress, save_checkpoint
from verify import commands, disturbances, endurance, kills, native, stress, tests


def one_trial(trial, tmp_path: Path, number: int = 0) -> Record:
    """What is known after one trial, which must not fail."""
    record = run_part(Part("part", "", trial, goal=10, seconds=200.0), results=tmp_path, numbers=[number])
    assert not record.failures, record.failures
    return record


def test_parts_have_names_of_their_own_and_say_what_a_failure_is() -> None:
    found = parts()
    assert len({part.name for part in found}) == len(found) >= 12
    assert all(part.about.endswith(".") and part.goal > 0 for part in found)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands that work on next to nothing: one conversion, whose undisturbed result is made here."""
    (tmp_path / "inputs").mkdir()
    np.save(tmp_path / "inputs" / "waves.npy", np.random.default_rng(0).normal(size=(12, 6, 16)).astype(np.float32))
    convert = commands.COMMANDS["convert"]
    monkeypatch.setattr(commands, "COMMANDS", {"convert": convert})
    monkeypatch.setattr(commands, "home", lambda: tmp_path)
    monkeypatch.setattr(commands, "inputs", lambda: tmp_path / "inputs")
    for module in (kills, disturbances):
        monkeypatch.setattr(module, "COMMANDS", {"convert": convert})
        monkeypatch.setattr(module, "ORDER", ["convert"])
    monkeypatch.setattr(disturbances, "ALONE", ["convert"])
    commands.whole.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    "trial",
    [kills.trial, disturbances.power_cut, disturbances.full_disk, disturbances.clock_back, disturbances.two_at_once],
    ids=lambda trial: trial.__name__,
)
def test_a_disturbed_conversion_loses_nothing(small: Path, trial) -> None:
    record = one_trial(trial, small / "results", number=1)
    assert (len(record.pieces), record.failures) == (1, [])


def test_every_command_is_disturbed() -> None:
    assert set(commands.ORDER) == set(commands.COMMANDS)
    assert {command.processes for command in commands.COMMANDS.values()} == {1, 2}


def test_what_was_lost_is_seen(tmp_path: Path) -> None:
    for name in ("cut", "uncut"):
        save_checkpoint(tmp_path / name / "last", {"model/a": torch.ones(3)}, Progress(step=1, seconds=1.0 * len(name)))
    cut, uncut = tmp_path / "cut", tmp_path / "uncut"
    assert differences(cut, uncut) == []
    assert unreadable(cut) == []
    save_checkpoint(cut / "last", {"model/a": torch.zeros(3)}, Progress(step=1))
    assert len(differences(cut, uncut)) == 3  # the index, and a file of tensors in either folder
    (cut / "last" / INDEX).write_text("{")
    assert len(unreadable(cut)) == 1


def test_a_power_cut_loses_what_was_not_synced(tmp_path: Path) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    kept.mkdir()

    def careless() -> None:
        disturbances.keep_journal(tmp_path / "journal", kept)
        (place / "new").write_text("new")
        (place / "new").replace(place / "file")  # neither the file nor the folder is synced

    (place / "file").write_text("old")
    child = commands.in_processes(Command("--version"), place, before=careless)[0]
    assert commands.ended(child, 60.0) == 0
    lost = disturbances.lose(place, tmp_path / "journal", random.Random(1))
    assert lost["files cut"] == 2 - lost["renames and deletions undone"] // 2 or lost["files cut"] >= 1
    assert (place / "file").read_text() != "new"


def test_one_case_of_every_other_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(stress.cases()) > 120
    assert not np.isfinite(stress.drawn("noise", 1e39, (3, 4, 5))).all()
    monkeypatch.setattr(endurance, "FORECAST", 40)
    monkeypatch.setattr(endurance, "TRAINING", 10)
    monkeypatch.setattr(endurance, "GROWTH", 0.5)  # so few steps are not yet steady
    monkeypatch.setattr(endurance, "state", lambda: tmp_path)
    assert one_trial(endurance.forecast, tmp_path / "forecast").counts["steps"] == 40
    assert one_trial(endurance.training, tmp_path / "training").counts["steps"] == 10
    assert [name.split("==")[0] for name in tests.floors()][:2] == ["numpy", "scipy"]


def test_memory_that_grows_is_seen(tmp_path: Path) -> None:
    watch = endurance.Flat()
    hoard = np.ones(2**24)
    with pytest.raises(AssertionError, match="memory grew"):
        watch.check(1)
    assert hoard.sum() > 0


@pytest.mark.skipif(not operations.available(), reason="needs native code")
def test_native_code_agrees_on_odd_tensors(as_users_call_it) -> None:
    seen: Counter[str] = Counter()
    threads = torch.get_num_threads()
    try:
        for number in range(40):
            native.case(random.Random(number), seen)
    finally:
        torch.set_num_threads(threads)
    assert {"misaligned", "every second", "refusal"} <= seen.keys()
