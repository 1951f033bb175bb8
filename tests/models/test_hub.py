"""Models on the Hugging Face Hub, played by a server on this machine: loading, pinning, and whatever can go wrong."""

import builtins
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.fake_hub import COMMIT, FakeHub, fake_hub

from ssno.cli.main import main
from ssno.data.normalise import Normaliser, Normalisers
from ssno.forecasting.forecaster import Forecaster
from ssno.models import hub as our_hub
from ssno.models.hub import download, upload
from ssno.models.pretrained import LIMITS, results_folder
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.load import load_forecaster

FILES = ["config.json", "model.safetensors"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """A folder and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def hub(monkeypatch) -> Iterator[FakeHub]:
    """The server, where huggingface_hub looks for the real one."""
    with fake_hub() as server:
        server.install(monkeypatch)
        yield server


@pytest.fixture
def model(hub, place) -> SSNO:
    """A model, and the repository org/mine with it and with files that nobody asks for."""
    torch.manual_seed(0)
    made = SSNOConfig.tiny().build()
    units = Normalisers(Normaliser("zscore", ("u",), (0.5,), (2.0,), (0.1,)), Normaliser.identity(()))
    Forecaster(made, normalisers=units, predict_increment=True).save(place / "source")
    files = {name: (place / "source" / name).read_bytes() for name in FILES}
    hub.repositories["org/mine"] = {**files, "evil.py": b"raise SystemExit", "../../outside": b"x", "README.md": b"#"}
    return made


def cached() -> list[str]:
    return sorted(path.name for path in our_hub.hub_folder().rglob("*") if path.is_file())


def test_a_repository_is_loaded_by_name_and_only_its_two_files_are_fetched(hub, model) -> None:
    found = SSNO.from_pretrained("org/mine")
    for name, value in model.state_dict().items():
        assert torch.equal(found.state_dict()[name], value)
    assert cached() == FILES
    assert {path.rpartition("/")[2] for path in hub.asked if "resolve" in path} == set(FILES)
    assert load_forecaster("hf://org/mine").normalisers.state.scale == (2.0,)
    assert results_folder(download("org/mine", limits=LIMITS)) == Path("runs/pretrained/mine")


def test_a_pinned_commit_that_is_here_needs_no_network(hub, model) -> None:
    SSNO.from_pretrained("org/mine", revision="main")
    hub.asked.clear()
    SSNO.from_pretrained("org/mine", revision=COMMIT)
    load_forecaster(f"hf://org/mine@{COMMIT}")
    load_forecaster(Path(f"hf://org/mine@{COMMIT}"))
    assert hub.asked == []


def test_a_folder_on_disk_comes_first(hub, model, place) -> None:
    model.save_pretrained("org/mine")
    SSNO.from_pretrained("org/mine")
    assert hub.asked == []
    with pytest.raises(ValueError, match="`revision` is for a repository, ORGANISATION/NAME, which 'org/mine' is not"):
        SSNO.from_pretrained("org/mine", revision="main")


def test_bad_names_are_refused_before_anything_is_asked(hub) -> None:
    for name in ("org", "a/b/c", "../x", "org/..", "or g/x", "org/x@y", "/etc/x", "a--b/c", "org/a\n", ""):
        with pytest.raises(ValueError, match="is not the name of a repository on the Hugging Face Hub"):
            download(name, limits=LIMITS)
    with pytest.raises(ValueError, match="`revision` must be a branch, a tag or a commit"):
        load_forecaster("hf://org/mine@../../x")
    assert hub.asked == []


def test_what_is_not_there_is_named(hub, model) -> None:
    with pytest.raises(FileNotFoundError, match="no folder org/other here, and no repository of that name"):
        SSNO.from_pretrained("org/other")
    with pytest.raises(FileNotFoundError, match="The repository org/mine has no revision 'v9'"):
        SSNO.from_pretrained("org/mine", revision="v9")
    del hub.repositories["org/mine"]["model.safetensors"]
    with pytest.raises(FileNotFoundError, match=r"org/mine has no model.safetensors, so it is not a model of ssno"):
        SSNO.from_pretrained("org/mine")
    assert cached() == []


@pytest.mark.parametrize("file", FILES)
def test_mutated_and_oversized_files_leave_nothing_behind(hub, model, file) -> None:
    content = hub.repositories["org/mine"][file]
    hub.damage[file] = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(ValueError, match=f"{file} of org/mine differs from the checksum of its commit"):
        SSNO.from_pretrained("org/mine")
    hub.damage.clear()
    hub.sizes[file] = 2**40
    with pytest.raises(ValueError, match=f"{file} of org/mine has {2**40} bytes; at most"):
        SSNO.from_pretrained("org/mine")
    assert cached() == []


def test_a_repository_with_nonsense_is_refused_by_the_readers(hub, model) -> None:
    hub.repositories["org/mine"]["config.json"] = b'{"format": "ssno-model", "version": 2, "config": {"model": "os"}}'
    with pytest.raises(ValueError, match="os"):
        load_forecaster("hf://org/mine")


def test_without_network_it_says_which_commits_are_here(hub, model, monkeypatch) -> None:
    SSNO.from_pretrained("org/mine")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match=rf"did not answer for org/mine: .*fetched before: {COMMIT}"):
        SSNO.from_pretrained("org/mine")


def test_without_the_package_the_error_says_what_to_install(monkeypatch, capsys) -> None:
    usual = builtins.__import__

    def missing(name: str, *rest: object) -> object:
        if name == "huggingface_hub":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    words = r"Reaching org/mine on the Hugging Face Hub needs huggingface_hub: pip install 'ssno\[hub\]'"
    with pytest.raises(ImportError, match=words):
        SSNO.from_pretrained("org/mine")
    with pytest.raises(SystemExit, match="2"):
        main(["publish", "ks-0.1-64", "-o", "there", "--to", "org/mine"])
    assert "pip install 'ssno[hub]'" in capsys.readouterr().err
    assert not Path("there").exists()


@pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # of huggingface_hub, about its own call
def test_uploading_makes_a_repository_with_exactly_the_files(hub, model, place) -> None:
    (place / "source" / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n")
    (place / "source" / "private.txt").write_text("stays")
    assert upload(place / "source", "me/new", files=(*FILES, "README.md")) == COMMIT
    assert hub.repositories["me/new"] == {n: (place / "source" / n).read_bytes() for n in (*FILES, "README.md")}
    assert json.loads(hub.repositories["me/new"]["config.json"])["format"] == "ssno-model"
    SSNO.from_pretrained("me/new")
