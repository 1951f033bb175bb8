"""Docs and examples use public names only: what a package exports, imported from the package."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from ssno import models, pde
from ssno.data.datasets import DATASETS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "skills" / "ssno" / "SKILL.md"]


def code_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return (
        text
        if path.suffix == ".py"
        else "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    )


@pytest.mark.parametrize("path", [*PAGES, *PROGRAMS], ids=lambda path: path.name)
def test_imports_are_of_exported_names_from_packages(path: Path) -> None:
    wrong = []
    for node in ast.walk(ast.parse(code_of(path))):
        if isinstance(node, ast.Import):
            wrong += [alias.name for alias in node.names if alias.name.startswith("ssno.")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ssno":
            package = importlib.import_module(node.module or "")
            exported = package.__all__ if hasattr(package, "__path__") and str(package.__name__).count(".") < 2 else ()
            wrong += [f"{node.module}.{alias.name}" for alias in node.names if alias.name not in exported]
    assert not wrong, f"{path.name} imports from modules, or names that their package does not export: {wrong}"


def test_every_model_and_every_problem_is_public() -> None:
    configs = {type(models.model_config(name)).__name__ for name in models.ALL_MODELS}
    networks = {name.removesuffix("Config") for name in configs}
    assert configs | networks <= set(models.__all__)
    assert {dataset.problem.__name__ for dataset in DATASETS.values()} <= set(pde.__all__)
