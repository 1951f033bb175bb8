"""Do two lists put things in the same order? Spearman's correlation: Pearson's of the ranks, ties sharing a mean."""

import torch
from jaxtyping import Float
from torch import Tensor


def average_ranks(values: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Ranks 1 ... n, float64; equal values get the mean of the ranks they take together."""
    _, group, sizes = torch.unique(values, return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    return (last - (sizes - 1) / 2)[group]


def rank_correlation(one: Float[Tensor, " n"], other: Float[Tensor, " n"]) -> float:
    """Spearman's correlation of two lists; 0 if one of them is constant."""
    a, b = (ranks - ranks.mean() for ranks in (average_ranks(one), average_ranks(other)))
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size else 0.0
