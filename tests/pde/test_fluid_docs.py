"""The examples in docs/fluids.md run, and its animations exist and are small."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "fluids.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_fluids_runs(example: str) -> None:
    exec(compile(example, "docs/fluids.md", "exec"), {})


def test_every_animation_exists_and_is_below_1500_kilobytes() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", TEXT)
    assert len(pictures) == 5
    assert all((DOCS / picture).stat().st_size < 1.5e6 for picture in pictures)
