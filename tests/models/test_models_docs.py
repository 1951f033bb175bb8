"""docs/models.md runs as it stands, and its numbers are those of the code."""

import re
from pathlib import Path

import pytest

from ssno.cli.models import describe
from ssno.costs.cost import Contest, Contestant
from ssno.costs.published import published_flops
from ssno.models.registry import ALL_MODELS, MODELS

TEXT = (Path(__file__).parents[2] / "docs" / "models.md").read_text()


def test_programs_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, "docs/models.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("name", list(ALL_MODELS))
def test_the_list_has_every_model_with_its_size(name) -> None:
    row = describe(ALL_MODELS[name])
    counts = [row[f"parameters_{n_dims}d"] for n_dims in (1, 2)]
    one, two = ("-" if count is None else f"{count:,}" for count in counts)
    assert f"| `{name}` | {one} | {two} | {row['past']} |" in TEXT


@pytest.mark.parametrize("name", ["unet", "gkt", "factformer", "ffno", "ssno"])
def test_the_operations_are_those_counted(name) -> None:
    config = MODELS[name]().for_grid((32,))
    flops, _ = Contestant(config, Contest("forward", (32,)), part=1).counted()
    assert rf"| `{name}` | {flops.total / 1e9:.3f} \| {published_flops(config, 32) / 1e9:.3f} |" in TEXT
