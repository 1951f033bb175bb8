"""What a model answers before it has learned anything."""

import pytest
import torch

from ssno.models.ssno import SSNO, SSNOConfig


@pytest.mark.parametrize("grid", [(64,), (32, 32)])
def test_answers_of_the_recommended_start_are_of_the_size_of_its_input(grid) -> None:
    torch.manual_seed(0)
    model = SSNO(SSNOConfig(n_dims=len(grid)).recommended(periodic=True)).eval()
    with torch.no_grad():
        answer = model(torch.randn(1, 4, 1, *grid))
    assert 0.01 < float(answer.std()) < 3
