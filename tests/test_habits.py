"""What contributors and CI rely on: one version, make targets that exist, a check of subjects."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_version_stands_in_one_place_and_heads_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = re.findall(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert headings[0][0] == version
    assert version not in (ROOT / "CITATION.cff").read_text()
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in headings[1:])


def test_workflows_call_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    called = {
        name
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for name in re.findall(r"run: make ([a-z-]+)", path.read_text())
    }
    assert {"test", "dist"} <= called <= targets


@pytest.mark.parametrize(("length", "code"), [(60, 0), (61, 1)])
def test_the_hook_refuses_subjects_of_more_than_60_characters(tmp_path, length, code) -> None:
    (entry,) = re.findall(r"entry: (sh -c .*)$", (ROOT / ".pre-commit-config.yaml").read_text(), flags=re.M)
    message = tmp_path / "message"
    message.write_text("x" * length + "\n\nbody " + "y" * 100 + "\n")
    assert subprocess.run(f"{entry} {message}", shell=True, capture_output=True).returncode == code


def test_workflows_test_the_pythons_that_are_claimed_and_store_no_token() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    test, release = ((ROOT / ".github" / "workflows" / f"{name}.yml").read_text() for name in ("test", "release"))
    tested = re.findall(r'os: (\w+)-latest, python: "([\d.]+)"', test)
    assert {"3.11", "3.12", "3.13"} == {python for system, python in tested if system == "ubuntu"}
    assert "macos" in {system for system, _ in tested}
    assert project["requires-python"] == ">=3.11"
    assert "id-token: write" in release
    assert "secrets." not in release


def test_an_issue_and_a_pull_request_have_templates() -> None:
    folder = ROOT / ".github"
    assert (folder / "pull_request_template.md").is_file()
    for path in (folder / "ISSUE_TEMPLATE").glob("*.md"):
        assert re.match(r"---\nname: .+\nabout: .+\n---\n", path.read_text()), path


def test_a_version_has_a_page_of_at_most_100_lines_in_the_changelog() -> None:
    pages = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1:]
    assert not [page.split()[0] for page in pages if len(page.splitlines()) > 100]
