"""The examples in docs/solvers.md run, and its pictures exist."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "solvers.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "docs/solvers.md", "exec"), {})


def test_every_picture_exists() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", TEXT)
    assert len(pictures) == 4
    assert all((DOCS / picture).is_file() for picture in pictures)
