"""REPRODUCTION.md says what results/reproduce says."""

import importlib.util
import json
from pathlib import Path

import pytest

from ssno.experiments.catalogue import EXPERIMENTS

ROOT = Path(__file__).parents[2]
FOUND = sorted((ROOT / "results" / "reproduce").glob("*/finding.json"))
specification = importlib.util.spec_from_file_location("reproduction", ROOT / "docs" / "scripts" / "reproduction.py")
assert specification is not None
assert specification.loader is not None
reproduction = importlib.util.module_from_spec(specification)
specification.loader.exec_module(reproduction)


@pytest.mark.parametrize("page", reproduction.PAGES)
def test_every_table_of_the_page_is_the_stored_one(page: str) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    assert reproduction.filled(written) == written


def test_the_script_would_notice_a_changed_number() -> None:
    page = (ROOT / "REPRODUCTION.md").read_text(encoding="utf-8")
    assert reproduction.filled(page.replace("| **holds** |", "| **perhaps** |")) == page


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.parent.name)
def test_every_stored_finding_carries_where_it_comes_from(path: Path) -> None:
    finding = json.loads(path.read_text(encoding="utf-8"))
    assert finding["experiment"] in EXPERIMENTS
    assert {"commit", "torch", "processor", "cores"} <= set(finding["provenance"])
    assert "dirty" not in finding["provenance"]["commit"]
    assert finding["verdicts"]


def test_every_picture_of_the_page_exists() -> None:
    page = (ROOT / "REPRODUCTION.md").read_text(encoding="utf-8")
    pictures = [part.split(")")[0] for part in page.split("](")[1:] if part.split(")")[0].endswith(".png")]
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)
