"""Shared by the data tests."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import jaxtyping
import pytest


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Run without type checks, as users do: values that the annotations exclude must meet our own message."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def public_files() -> ModuleType:
    """The writers of `public_files.py`."""
    path = Path(__file__).with_name("public_files.py")
    spec = importlib.util.spec_from_file_location("public_files", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
