"""Finding checkpoints that come with the package by name, and those that are there."""

import json
from dataclasses import asdict

import pytest
from docs.scripts.publish import LARGEST, texts

from ssno.cli.models import describe_checkpoint
from ssno.models import pretrained as bundled
from ssno.models.pretrained import FILES, bundled_folders, reported_metrics, resolve_checkpoint, results_folder
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.load import load_forecaster


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A bundle with one model, and an empty folder to work in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(bundled, "ROOT", tmp_path / "bundle")
    SSNO(SSNOConfig.tiny(d_state=4)).save_pretrained(tmp_path / "bundle" / "ks-0.1-64")
    return tmp_path / "bundle"


def test_a_name_finds_the_model_and_a_folder_on_disk_comes_first(root, tmp_path) -> None:
    assert list(bundled_folders()) == ["ks-0.1-64"]
    assert SSNO.from_pretrained("ks-0.1-64").config.d_state == 4
    SSNO(SSNOConfig.tiny(d_state=2)).save_pretrained("ks-0.1-64")
    assert SSNO.from_pretrained("ks-0.1-64").config.d_state == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ks-0.1-46", r"no bundled checkpoint of that name.*Did you mean `ks-0.1-64`\? There are: ks-0.1-64\."),
        ("torus", r"no bundled checkpoint of that name. There are: ks-0.1-64\."),
    ],
)
def test_a_name_that_is_nothing_lists_what_there_is(root, name, told) -> None:
    for read in (SSNO.from_pretrained, load_forecaster):
        with pytest.raises(FileNotFoundError, match=told):
            read(name)


def test_an_empty_bundle_says_so(root, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bundled, "ROOT", tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"There are: none\."):
        resolve_checkpoint("ks-0.1-64")


@pytest.mark.parametrize("name", ["../secret", "ks-0.1-64/../../secret", "./../secret", "x/ks-0.1-64"])
def test_names_do_not_lead_out_of_the_bundle(root, name) -> None:
    SSNO(SSNOConfig.tiny()).save_pretrained(root.parent / "secret")
    SSNO(SSNOConfig.tiny()).save_pretrained(root / "x" / "ks-0.1-64")
    found = resolve_checkpoint(name)  # an ordinary path, seen from here
    assert root not in found.absolute().parents
    assert str(found) == str(type(found)(name))


def test_only_whole_folders_with_plain_names_are_listed(root) -> None:
    SSNO(SSNOConfig.tiny()).save_pretrained(root / ".staging")
    (root / "empty").mkdir()
    (root / "README.md").write_text("")
    assert list(bundled_folders()) == ["ks-0.1-64"]


def test_results_of_a_bundled_checkpoint_are_not_written_to_the_package(root, tmp_path) -> None:
    assert results_folder(resolve_checkpoint("ks-0.1-64")) == bundled.RESULTS / "ks-0.1-64"
    assert results_folder(tmp_path / "run") == tmp_path / "run"


@pytest.mark.parametrize("name", list(bundled_folders()))
def test_every_bundled_checkpoint_is_small_whole_and_states_its_error(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = bundled_folders()[name]
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert sum(path.stat().st_size for path in folder.iterdir()) < LARGEST
    document = json.loads((folder / "config.json").read_text())
    assert not [text for _, text in texts(document) if "/" in text or "\\" in text]
    stated = reported_metrics(document)
    assert stated is not None
    assert stated.split == "test"
    assert 0 < stated.rel_l2_onestep < 1 > stated.rel_l2 > 0
    assert describe_checkpoint(folder)["reported"] == asdict(stated)
    model = load_forecaster(name).model
    assert type(model).from_pretrained(name).config == model.config
