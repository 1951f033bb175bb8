"""docs/evidence/trust.md says what results/verify says; service levels name tests that exist."""

import re
from pathlib import Path

from verify.campaign import RESULTS
from verify.page import PAGE, write_page
from verify.parts import parts

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_stored_results_make(tmp_path: Path) -> None:
    write_page(parts(), results=RESULTS, page=tmp_path / "trust.md")
    assert (tmp_path / "trust.md").read_text() == PAGE.read_text(), "run `python -m verify --page`"
    assert len(PAGE.read_text().splitlines()) <= 150


def test_every_service_level_names_tests_and_parts_that_there_are() -> None:
    text = (ROOT / "docs" / "manual" / "service-levels.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(named) >= 15
    assert not [name for name in named if not (ROOT / name).is_file()]
    known = {part.name for part in parts()}
    assert not {word for words in re.findall(r"`python -m verify ([\w -]+)`", text) for word in words.split()} - known
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    promises = [row for row in rows if not row.startswith(("| promise", "| what"))]
    assert all("`" in row for row in promises)
