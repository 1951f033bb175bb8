"""Diagonal plus low rank: the kernel of a full S4 system, by Cauchy sums and the Woodbury identity.

    s' = A s + B x,   y = C s,   A = diag(rate) - P P^H,    sampled by the bilinear rule with a step dt

The kernel C Abar^l Bbar, l = 0 ... L - 1, is read off its generating function at the L-th roots of unity z. Summing a
finite geometric series of matrices leaves one resolvent, with C replaced by C (I - Abar^L), the "truncated" output:

    sum_l C Abar^l Bbar z^l  =  dt Ctruncated ( diag(d) + a P P^H )^-1 B,
    d = (1 - z) - a rate,    a = dt (1 + z) / 2

and the low-rank term is removed by Woodbury, so that only sums over modes of v_n / d_n (Cauchy sums) are left. Written
this way nothing is singular at z = -1. S4 stores C already truncated: then no power of Abar is ever needed, as long as
the kernel is wanted at the stored length. `truncated` and `untruncated` move between lengths by dense algebra.

Half of each system is stored; the other half is its conjugate, so kernels are real.

Axes: h channel, n mode (one per conjugate pair), r rank, m = 2n all modes, z root of unity, l grid point.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

# The HiPPO-LegS system in the basis that makes it diagonal plus rank one: where a full S4 layer starts.
#
# HiPPO-LegS keeps the coefficients of the input's history in Legendre polynomials:
#
#     A[i, j] = -sqrt((2i+1)(2j+1)) below the diagonal,  -(i+1) on it,  0 above;     B[i] = sqrt(2i+1)
#
# Adding p p^T with p[i] = sqrt(i + 1/2) leaves -1/2 identity + S with S antisymmetric. The unitary eigenvectors V of S
# therefore give  A = V ( diag(-1/2 - i frequency) - P P^H ) V^H,  P = V^H p,  and B = V^H B in the new basis.
# Frequencies come in pairs of opposite sign; the positive half is kept, the other half is its conjugate.
#
# Axes: n mode (one per conjugate pair).


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


# Diagonal plus low rank: the kernel of a full S4 system, by Cauchy sums and the Woodbury identity.


class LowRankSystem(NamedTuple):
    """One system per channel: A = diag(rate) - P P^H with P the columns of `low_rank`, B, C and the step dt."""

    rate: Complex[Tensor, "h n"]
    low_rank: Complex[Tensor, "r h n"]
    input_weight: Complex[Tensor, "h n"]
    output_weight: Complex[Tensor, "h n"]
    step: Float[Tensor, " h"]


def low_rank_kernel(system: LowRankSystem, *, length: int) -> Float[Tensor, "h l"]:
    """The first `length` samples of the impulse response, `output_weight` being truncated to that very length.

    Time is O(h n l + h l log l): no matrix is formed.
    """
    if length < 1:
        raise ValueError(f"`length` must be at least 1, got {length}.")
    rate, low_rank, input_weight, output_weight = (_both(part) for part in system[:4])
    index = torch.arange(length // 2 + 1, dtype=system.step.dtype, device=system.step.device)
    root = torch.polar(torch.ones_like(index), -2 * math.pi / length * index)
    ahead = system.step[:, None] * (1 + root) / 2  # h z
    resolvent = 1 / ((1 - root) - ahead[:, None] * rate[..., None])  # h m z

    rows = torch.cat([output_weight[None], low_rank.conj()])  # (1+r) h m
    columns = torch.cat([input_weight[None], low_rank])
    products = torch.einsum("ahm,bhm->habm", rows, columns).flatten(1, 2)  # h (1+r)(1+r) m
    cauchy = (products @ resolvent).unflatten(1, (len(rows), len(rows))).movedim(-1, 1)  # h z 1+r 1+r

    identity = torch.eye(len(low_rank), dtype=rate.dtype, device=rate.device)
    core = identity + ahead[..., None, None] * cauchy[..., 1:, 1:]
    correction = cauchy[..., :1, 1:] @ torch.linalg.solve(core, cauchy[..., 1:, :1])
    spectrum = system.step[:, None] * (cauchy[..., 0, 0] - ahead * correction[..., 0, 0])
    return torch.fft.irfft(spectrum, n=length)


def truncated(system: LowRankSystem, *, length: int) -> LowRankSystem:
    """The system with C replaced by C (I - Abar^length): what `low_rank_kernel` of that length asks for."""
    remaining = _remaining(system, length)
    output = torch.einsum("hm,hmk->hk", _double(_both(system.output_weight)), remaining)
    return _with_output(system, output)


def untruncated(system: LowRankSystem, *, length: int) -> LowRankSystem:
    """The inverse of `truncated`: from the stored C of a public S4 layer of that length to the plain C.

    Solved in float64: slow channels hardly decay over a short length, and I - Abar^length is then nearly singular.
    """
    remaining = _remaining(system, length)
    output = torch.linalg.solve(remaining.transpose(1, 2), _double(_both(system.output_weight))[..., None])[..., 0]
    return _with_output(system, output)


def dense(system: LowRankSystem) -> tuple[Complex[Tensor, "h m m"], Complex[Tensor, "h m"]]:
    """Abar and Bbar as matrices in float64, conjugate modes included: the readable reference."""
    rate, low_rank, input_weight = (_double(_both(part)) for part in system[:3])
    step = system.step.double()[:, None, None]
    identity = torch.eye(rate.shape[1], dtype=rate.dtype, device=rate.device)
    matrix = torch.diag_embed(rate) - torch.einsum("rhm,rhk->hmk", low_rank, low_rank.conj())
    below = identity - step / 2 * matrix
    advance = torch.linalg.solve(below, identity + step / 2 * matrix)
    return advance, torch.linalg.solve(below, step * input_weight[..., None])[..., 0]


def _remaining(system: LowRankSystem, length: int) -> Complex[Tensor, "h m m"]:
    """I - Abar^length."""
    advance, _ = dense(system)
    return torch.eye(advance.shape[1], dtype=advance.dtype, device=advance.device) - torch.matrix_power(advance, length)


def _with_output(system: LowRankSystem, output: Complex[Tensor, "h m"]) -> LowRankSystem:
    modes = system.rate.shape[1]
    return system._replace(output_weight=output[:, :modes].to(system.output_weight.dtype))


def _both(half: Complex[Tensor, "*shape n"]) -> Complex[Tensor, "*shape m"]:
    """Append the conjugate modes."""
    return torch.cat([half, half.conj()], dim=-1)


def _double(value: Complex[Tensor, "*shape"]) -> Complex[Tensor, "*shape"]:
    return value.to(torch.complex128)
