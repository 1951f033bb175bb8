"""A run as a folder for others: complete, readable by name, without paths of this machine, names never markup."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.fake_hub import COMMIT, fake_hub

from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.forecasting.rollout import rollout
from ssno.models.registry import model_config
from ssno.report.publish import PUBLISHED, publish_run, without_paths
from ssno.runs.load import load_forecaster
from ssno.runs.log import Silent
from ssno.runs.open import open_run
from ssno.training.train import train

ODD = "u|<b>`x`"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of two epochs on a file of waves whose field has an odd name."""
    folder = tmp_path_factory.mktemp("publish")
    phase = np.random.default_rng(0).uniform(0, 6, (24, 1, 1, 1)) + 0.3 * np.arange(9)[:, None, None]
    array = np.sin(2 * np.pi * np.arange(16) / 16 - phase).astype(np.float32)
    np.save(folder / "waves.npy", array)
    data = Trajectories.from_array(array, lengths=[4.0], fields=[ODD], dt=0.5)
    torch.manual_seed(0)
    train(model_config("ssno:tiny").build(), data, folder=folder / "run", epochs=2, batch_size=6, reporter=Silent())
    described = {"path": str(folder / "waves.npy"), "axes": "batch time channel x", "fields": [ODD]}
    described |= {"dt": 0.5, "lengths": [4.0]}
    document = json.loads((folder / "run" / "config.json").read_text())
    document["run"] = {"data": described, "model": document["config"], "train": document["run"]["train"]}
    document["data"]["train"]["units"] = {"fields": {ODD: "m s-1"}, "axes": {}, "time": "s"}
    (folder / "run" / "config.json").write_text(json.dumps(document))
    return folder / "run"


@pytest.fixture
def published(trained, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return publish_run(open_run(trained), Path("there/waves"), licence="MIT")


def test_the_folder_is_complete_and_forecasts_as_the_run_does(published, trained, tmp_path) -> None:
    assert sorted(path.name for path in published.iterdir()) == sorted(PUBLISHED)
    assert [path.name for path in published.parent.iterdir()] == ["waves"]
    frames = torch.randn(1, 4, 1, 16)
    found = rollout(load_forecaster(published), frames, steps=3)
    assert torch.equal(found, rollout(load_forecaster(trained), frames, steps=3))
    assert str(trained.parent) not in "".join((published / n).read_text() for n in ("config.json", "README.md"))
    run = open_run(published)
    assert (run.licence, run.data.path, run.time_step) == ("MIT", "waves.npy", 0.5)


def test_the_card_has_every_section_and_no_markup_from_names(published) -> None:
    card = (published / "README.md").read_text()
    assert card.startswith("---\nlicense: mit\nlibrary_name: ssno\n")
    for part in ("Use it", "Data", "Training", "Errors", "How far, and where it fails", "Units and normalisation"):
        assert f"\n## {part}\n\n" in card
    assert 'load_forecaster("waves")' in card
    assert "ssno predict waves --input" in card
    assert "u\\|\\<b\\>\\`x\\` (m s-1)" in card
    assert "<b>" not in card
    assert "| persistence | linear |" in card
    assert "| time step | 0.5 s |" in card
    assert "validation error" in card
    assert "| optimizer | soap |" in card or "| optimizer | adamw |" in card
    assert "trivial forecast" in card.partition("## How far, and where it fails")[2]
    assert (published / "LICENSE").read_text().startswith("MIT License\n\nCopyright (c) ")


def test_wrong_wishes_leave_nothing_behind(trained, tmp_path) -> None:
    run = open_run(trained)
    with pytest.raises(ValueError, match="`licence` must be an SPDX name such as MIT or CC-BY-4.0, got 'not stated'"):
        publish_run(run, tmp_path / "a")
    with pytest.raises(ValueError, match="is not the name of a repository"):
        publish_run(run, tmp_path / "a", licence="MIT", repository="../a")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(FileExistsError, match="full exists already"):
        publish_run(run, tmp_path / "full", licence="MIT")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_paths_are_reduced_to_their_last_part() -> None:
    said = {"path": "data/x.h5", "units": {"u": "m/s"}, "start_from": "~/runs/a", "seen": ["/home/me/b", "C:\\c"]}
    kept = {"path": "x.h5", "units": {"u": "m/s"}, "start_from": "a", "seen": ["b", "c"]}
    assert without_paths(said) == kept


@pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # of huggingface_hub, about its own call
def test_the_command_uploads_what_it_wrote_and_others_load_it(trained, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fake_hub() as server:
        server.install(monkeypatch)
        main(["publish", str(trained), "-o", "waves", "--licence", "CC-BY-4.0", "--to", "me/waves", "--json"])
        assert json.loads(capsys.readouterr().out)["commit"] == COMMIT
        assert set(server.repositories["me/waves"]) == set(PUBLISHED)
        assert b'load_forecaster("hf://me/waves")' in server.repositories["me/waves"]["README.md"]
        assert open_run("hf://me/waves").name == "waves"
        server.refusing = True
        with pytest.raises(SystemExit, match="2"):
            main(["publish", str(trained), "-o", "again", "--licence", "MIT", "--to", "me/waves"])
    assert "again is complete: try `hf upload me/waves again` later" in capsys.readouterr().err
