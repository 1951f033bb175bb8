"""Counting the parameters of a model that is only described."""

import pytest
import torch

from ssno.models.operator import count_parameters, parameters_of
from ssno.models.registry import model_config


@pytest.mark.parametrize(("name", "n_dims"), [("ssno", 2), ("fno", 1), ("transolver", 1), ("ssno-sphere", 2)])
def test_a_described_model_is_counted_as_if_it_were_built(name: str, n_dims: int) -> None:
    config = model_config(name, n_dims=n_dims)
    assert parameters_of(config) == count_parameters(config.build())


def test_counting_leaves_the_random_numbers_that_follow_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    parameters_of(model_config("ssno"))
    assert torch.equal(torch.rand(3), expected)
