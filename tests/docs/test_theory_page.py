"""The pictures of the theory page: the script draws them all, and the quick ones can be drawn again."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "theory.md").read_text()
PICTURES = re.findall(r"\(images/theory-(.+?)\.png\)", TEXT)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("theory_figures", ROOT / "docs" / "scripts" / "theory_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_draws_exactly_the_pictures_of_the_page(script) -> None:
    assert sorted(PICTURES) == sorted(script.FIGURES)
    assert all((ROOT / "docs" / "images" / f"theory-{name}.png").is_file() for name in PICTURES)


@pytest.mark.parametrize("name", ["modes", "damping", "fno-recovery", "long-axes"])
def test_a_quick_picture_can_be_drawn_again(script, name, tmp_path) -> None:
    script.main(names=(name,), folder=tmp_path)
    assert (tmp_path / f"theory-{name}.png").stat().st_size > 10_000
