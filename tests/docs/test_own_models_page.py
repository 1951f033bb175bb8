"""docs/own-models.md runs as it stands."""

import re
from pathlib import Path

import pytest

from ssno.models import registry

TEXT = (Path(__file__).parents[2] / "docs" / "own-models.md").read_text()


def test_programs_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "REGISTERED", {})
    names = {"__name__": "__main__"}
    for block in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        exec(compile(block, "docs/own-models.md", "exec"), names)
    assert "stencil" in capsys.readouterr().out  # in the table of `ssno models`
    assert (tmp_path / "runs/stencil/report.html").stat().st_size > 10_000
    with pytest.raises(ValueError, match=r"Unknown name `Stencil`.*must be registered first, by your own code"):
        names["load_forecaster"]("elsewhere")  # type: ignore[operator]
