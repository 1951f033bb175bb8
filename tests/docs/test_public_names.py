"""Docs and examples use public names only: what a package exports, imported from the package."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from ssno import models, pde
from ssno.data.datasets import DATASETS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "REPRODUCTION.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))


def code_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return (
        text
        if path.suffix == ".py"
        else "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    )


@pytest.mark.parametrize("path", [*PAGES, *PROGRAMS], ids=lambda path: path.name)
def test_imports_are_of_exported_names(path: Path) -> None:
    private = []
    for node in ast.walk(ast.parse(code_of(path))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != "ssno":
            continue
        module = node.module or ""
        package = ".".join(module.split(".")[:2])
        exported = getattr(importlib.import_module(package), "__all__", None)
        if exported is not None:  # a package that does not say what is public is not held to it
            named = [alias.name for alias in node.names if not module.endswith(f".{alias.name}")]  # like its module
            private += [f"{module}.{name}" for name in named if name not in exported]
    assert not private, private


def test_every_model_and_every_problem_is_public() -> None:
    configs = {type(models.model_config(name)).__name__ for name in models.ALL_MODELS}
    networks = {name.removesuffix("Config") for name in configs}
    assert configs | networks <= set(models.__all__)
    assert {dataset.problem.__name__ for dataset in DATASETS.values()} <= set(pde.__all__)
