"""Rank correlation against scipy's."""

import pytest
import torch
from scipy.stats import rankdata, spearmanr

from ssno.forecasting.cloud_scores import average_ranks, rank_correlation


def test_ranks_and_correlation_are_scipys_ties_included() -> None:
    one, other = torch.randn(50, dtype=torch.float64), torch.randint(6, (50,)).double()
    assert average_ranks(other).tolist() == rankdata(other.numpy()).tolist()
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one.numpy(), other.numpy()).statistic, abs=1e-14)
    assert rank_correlation(one, torch.exp(one)) == pytest.approx(1)
    assert rank_correlation(one, torch.zeros(50)) == 0
