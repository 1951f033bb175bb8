"""The page about devices: its code runs, its list of commands is that of the command line."""

import json
import re
from pathlib import Path

from ssno.base.device import SWITCH
from ssno.cli.main import VERBS
from ssno.training.machine_check import ALLOWED

TEXT = (Path(__file__).parents[2] / "docs" / "devices.md").read_text()


def test_the_examples_run(capsys) -> None:
    for block in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        exec(compile(block, "docs/devices.md", "exec"), {})
    assert capsys.readouterr().out == "True\n"


def test_commands_switch_and_tolerances_are_those_of_the_code() -> None:
    listed = re.search(r"every command that computes \((.*?)\)", TEXT, flags=re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == {"train", *(name for name, verb in VERBS.items() if verb.computes)}
    assert SWITCH in TEXT
    assert (ALLOWED["losses"], ALLOWED["forecasts"], ALLOWED["gradients"]) == (1e-3, 1e-3, 1e-4)
    assert "losses and forecasts 1e-3, gradients 1e-4" in TEXT


def test_figures_of_compilation_are_the_stored_ones() -> None:
    root = Path(__file__).parents[2]
    stored = json.loads((root / "results" / "compile.json").read_text())
    milliseconds = {name: round(found["median"]) for name, found in stored["ms"].items()}
    page = (root / "docs" / "training.md").read_text()
    assert f"a step then takes {milliseconds['compiled']} ms, against {milliseconds['torch']}" in page
    assert f"{milliseconds['fused']} with the native one" in page
