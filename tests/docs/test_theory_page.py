"""The pictures of the theory page: the script draws them all, and the quick ones can be drawn again."""

import re
from pathlib import Path

import pytest
from docs.scripts import theory_figures as script

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "design" / "theory.md").read_text()
PICTURES = re.findall(r"\(\.\./images/theory-(.+?)\.png\)", TEXT)


def test_the_script_draws_exactly_the_pictures_of_the_page() -> None:
    assert sorted(PICTURES) == sorted(script.FIGURES)
    assert all((ROOT / "docs" / "images" / f"theory-{name}.png").is_file() for name in PICTURES)


@pytest.mark.parametrize("name", ["modes", "damping", "fno-recovery", "long-axes"])
def test_a_quick_picture_can_be_drawn_again(name, tmp_path) -> None:
    script.main(names=(name,), folder=tmp_path)
    assert (tmp_path / f"theory-{name}.png").stat().st_size > 10_000
