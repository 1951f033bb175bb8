"""The examples in docs/fluids.md run, and its animations exist and are small."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.pde.problems.problem import Solution

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "fluids.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_fluids_runs(example: str) -> None:
    made: dict[str, object] = {}
    exec(compile(example, "docs/fluids.md", "exec"), made)
    fields = [np.asarray(getattr(value, "state", value)) for value in made.values() if is_field(value)]
    assert fields, "an example should compute something"
    assert all(np.isfinite(field).all() for field in fields)


def is_field(value: object) -> bool:
    return isinstance(value, np.ndarray | torch.Tensor | Solution)


def test_the_fluids_page_has_examples() -> None:
    assert EXAMPLES


def test_every_animation_exists_and_is_below_1500_kilobytes() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", TEXT)
    assert len(pictures) == 5
    assert all((DOCS / picture).stat().st_size < 1.5e6 for picture in pictures)
