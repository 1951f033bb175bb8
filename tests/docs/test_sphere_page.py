"""docs/sphere.md: its program runs, its tables are those stored, its pictures are there and small."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sphere.md").read_text()
STORED = json.loads((ROOT / "results" / "sphere-rules.json").read_text())


def test_the_program_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    exec(compile(program, "docs/sphere.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("case", ["public", "vortical"])
def test_the_tables_are_the_stored_ones(case: str) -> None:
    title = {"public": "public, t = |", "vortical": "eddies, t = |"}[case]
    table = PAGE.split(title)[1].split("\n\n")[0]
    for name in ("persistence", "equivariant-linear", "zonal-linear"):
        row = next(line for line in table.splitlines() if line.startswith(f"| {name}"))
        shown = [float(cell.strip(" *")) for cell in row.strip("|").split("|")[1:-1]]
        assert shown == pytest.approx(STORED[case][name]["rel_l2_area"], rel=1e-2)


@pytest.mark.parametrize("picture", re.findall(r"\((images/.*?)\)", PAGE))
def test_pictures_are_there_and_small(picture: str) -> None:
    assert (ROOT / "docs" / picture).stat().st_size < 2e6
