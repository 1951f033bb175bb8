"""Every example runs as it stands, in an empty folder, and draws."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHORTER = {"universality": ["--steps", "20", "--widths", "2", "4"]}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example), *SHORTER.get(example.stem, [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert any(path.suffix == ".png" for path in tmp_path.rglob("*"))
