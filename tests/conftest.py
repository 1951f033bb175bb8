"""Shared by all tests: fixed seeds and a quiet matplotlib."""

import jaxtyping
import matplotlib
import pytest
import torch

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def as_users_call_it():
    """Switch the run-time type checks off: users do not have them, so our own errors must speak."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
