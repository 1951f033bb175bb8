"""Shared by the data tests."""

from types import ModuleType

import pytest
from tests.data import public_files as writers


@pytest.fixture(scope="session")
def public_files() -> ModuleType:
    """The writers of `public_files.py`."""
    return writers
