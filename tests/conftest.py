"""Shared by all tests: fixed seeds and a quiet matplotlib."""

import matplotlib
import pytest
import torch

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)
