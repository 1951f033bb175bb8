"""docs/evaluation.md runs as it stands, and names every metric."""

import re
import shlex
from pathlib import Path

from ssno.cli.main import main
from ssno.forecasting.cloud_scores import CLOUD_METRICS
from ssno.forecasting.scores import EVERY

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks].count("python") == 4
    for kind, block in blocks:
        if kind == "python":
            exec(block, {})
            continue
        for line in block.strip().splitlines():
            main(shlex.split(line)[1:])
    shown = capsys.readouterr().out
    assert "solver, same grid" in shown
    assert "Spread over error" in shown
    assert "Not separable in rel_l2: a (0.2 ± 0.25) and b" in shown
    assert (tmp_path / "results.tex").read_text().count(r"\toprule") == 2
    assert (tmp_path / "runs" / "seed0" / "evaluation-128.json").is_file()


def test_the_page_explains_every_metric() -> None:
    text = PAGE.read_text()
    on_grids = [name for name in EVERY if name not in ("runaway", *CLOUD_METRICS)]
    for name in (*on_grids, "rel_l2_step", "spectral_error/low"):
        assert f"| `{name}" in text, name
    assert "runs away" in text
