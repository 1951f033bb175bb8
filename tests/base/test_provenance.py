"""Where data come from: the commit is that of our own checkout, or unknown."""

import subprocess
from pathlib import Path

import pytest

from ssno.base.provenance import available_cores, processor_name, provenance, source_commit


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "module.py").write_text("a = 1\n")
    git(tmp_path, "add", "module.py")
    git(tmp_path, "commit", "--quiet", "-m", "First")
    return tmp_path


def test_the_commit_is_found_and_marked_when_files_have_changed(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "-a", "v1", "-m", "tagged")  # a tag must not take the commit's place
    assert source_commit(repository / "module.py") == commit
    (repository / "module.py").write_text("a = 2\n")
    assert source_commit(repository / "module.py") == f"{commit}-dirty"


def test_a_package_installed_inside_another_repository_has_no_commit(repository: Path) -> None:
    installed = repository / "venv" / "ssno.py"
    installed.parent.mkdir()
    installed.write_text("")
    assert source_commit(installed) == "unknown"


def test_a_machine_without_git_has_no_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert source_commit(repository / "module.py") == "unknown"


def test_versions_and_hardware_are_recorded() -> None:
    recorded = provenance()
    assert {"ssno", "commit", "python", "numpy", "torch", "h5py", "hdf5", "system"} <= recorded.keys()
    assert recorded["processor"] == processor_name() != ""
    assert recorded["cores"] == available_cores() >= 1
