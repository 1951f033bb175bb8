"""The HiPPO-LegS system in the basis that makes it diagonal plus rank one: where a full S4 layer starts.

HiPPO-LegS keeps the coefficients of the input's history in Legendre polynomials:

    A[i, j] = -sqrt((2i+1)(2j+1)) below the diagonal,  -(i+1) on it,  0 above;     B[i] = sqrt(2i+1)

Adding p p^T with p[i] = sqrt(i + 1/2) leaves -1/2 identity + S with S antisymmetric. The unitary eigenvectors V of S
therefore give  A = V ( diag(-1/2 - i frequency) - P P^H ) V^H,  P = V^H p,  and B = V^H B in the new basis. Frequencies
come in pairs of opposite sign; the positive half is kept, the other half is its conjugate.

Axes: n mode (one per conjugate pair).
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor


class DiagonalHippo(NamedTuple):
    """Half of the transformed system: rates are -1/2 - i frequency."""

    frequency: Float[Tensor, " n"]
    low_rank: Complex[Tensor, " n"]
    input_weight: Complex[Tensor, " n"]


def hippo_legs(d_state: int) -> DiagonalHippo:
    """HiPPO-LegS of order `d_state`, frequencies ascending, in float64."""
    root = np.sqrt(np.arange(d_state) + 0.5)
    below = np.tril(np.outer(root, root), -1)
    # S = below.T - below has eigenvalues -i w: eigenvectors of the Hermitian i S for the real eigenvalues w.
    frequency, vectors = np.linalg.eigh(1j * (below.T - below))
    kept = vectors[:, d_state // 2 :].conj().T
    return DiagonalHippo(
        torch.from_numpy(frequency[d_state // 2 :].copy()),
        torch.from_numpy(kept @ root),
        torch.from_numpy(kept @ (np.sqrt(2) * root)),
    )
