"""The examples in docs/solvers.md run, and its pictures exist."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.pde.problems.problem import Solution

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "solvers.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(example: str) -> None:
    made: dict[str, object] = {}
    exec(compile(example, "docs/solvers.md", "exec"), made)
    fields = [np.asarray(getattr(value, "state", value)) for value in made.values() if is_field(value)]
    assert fields, "an example should compute something"
    assert all(np.isfinite(field).all() for field in fields)


def is_field(value: object) -> bool:
    return isinstance(value, np.ndarray | torch.Tensor | Solution)


def test_the_solvers_page_has_examples() -> None:
    assert EXAMPLES


def test_every_picture_exists() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", TEXT)
    assert len(pictures) == 4
    assert all((DOCS / picture).is_file() for picture in pictures)
