"""Shared by the data tests."""

import json
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.data import public_files as writers

from ssno.data.sandbox import parent as probe
from ssno.data.sandbox import parent as sandbox
from ssno.data.sandbox.child import reply


@pytest.fixture(scope="session")
def public_files() -> ModuleType:
    """The writers of `public_files.py`."""
    return writers


class NoChild:
    """Answers as the child process does, in this one: for packages that only pretend to be installed, and for speed."""

    def ask(self, request: dict[str, Any], *, most: int = 0, time_limit: float) -> tuple[dict[str, Any], np.ndarray]:
        answer, numbers = reply(json.loads(json.dumps(request)))
        data = np.frombuffer(b"".join(values.tobytes() for values in numbers), np.uint8).copy()
        assert len(data) <= most
        return json.loads(json.dumps(answer)), data


@pytest.fixture
def without_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process do what the child process does."""
    monkeypatch.setattr(sandbox, "_child", NoChild)
    probe._examined.cache_clear()
