"""Any Fourier layer along one axis is a state-space layer: build that layer, or its best approximation with few states.

A Fourier layer multiplies the k-th Fourier coefficient of its input by a matrix R_k. Its kernel on a unit axis,

    kappa(x) = sum_k R_k exp(2 pi i k x),   k = -K ... K,   R_-k = conj(R_k),

is that of a linear state-space layer (`ssno.layers.linear_ssm`) with zero damping and the harmonic frequencies 2 pi k,
applied circularly on one period. A mode carries a rank-one matrix, so R_k takes as many modes as its rank: its singular
value decomposition gives them. Fewer modes per frequency give the best approximation of that rank, in the norm of
operators on L2 as well as in the Hilbert-Schmidt norm, because different frequencies are orthogonal (Eckart-Young).

Axes: k frequency, o channel out, i channel in, j singular value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Complex
from torch import Tensor

from ssno.layers.linear_ssm import LinearSSM, LinearSweep
from ssno.layers.spectral import SpectralConvolution

FourierLayer = SpectralConvolution | Tensor
"""A spectral convolution over one axis, or its weights: complex (k, o, i), or real (k, o, i, 2)."""


@dataclass(frozen=True)
class Recovery:
    """A state-space layer, and how far it is from the Fourier layer it was built from."""

    layer: LinearSSM
    operator_error: float
    """The largest L2 norm of the difference of outputs over inputs of norm one."""
    relative_error: float
    """The Hilbert-Schmidt norm of the difference over that of the Fourier layer: the relative error on white noise."""


@dataclass(frozen=True)
class FactorisedRecovery:
    """A sum of state-space layers along the axes of a grid, and the recovery of each."""

    layer: LinearSweep
    axes: tuple[Recovery, ...]


def recover_fno(fourier: FourierLayer, *, points: int, rank: int | None = None) -> Recovery:
    """The state-space layer that equals a one-dimensional Fourier layer, up to rounding.

    It does so on a grid of `points` points and on every other grid that carries its frequencies; only the Nyquist
    frequency of `points`, if the layer uses it, belongs to that grid alone, because a real transform counts it once.
    With `rank`, each frequency gets that many modes, and the layer is the best approximation there is.
    """
    matrices = spectral_matrices(fourier)
    frequencies, channels_out, channels_in = matrices.shape
    if frequencies > points // 2 + 1:
        raise ValueError(
            f"`fourier` has {frequencies} frequencies, but `points={points}` carries {points // 2 + 1}. "
            f"Give at least {2 * frequencies - 2} points."
        )
    full_rank = min(channels_out, channels_in)
    rank = full_rank if rank is None else rank
    if not 1 <= rank <= full_rank:
        raise ValueError(f"`rank` must lie between 1 and {full_rank}, the size of the matrices, got {rank}.")

    index = torch.arange(frequencies, device=matrices.device)
    real = (index == 0) | (2 * index == points)  # of these, a real transform keeps the real part, once
    matrices = torch.where(real[:, None, None], matrices.real.to(matrices.dtype), matrices)
    times_counted = torch.where(real, 1.0, 2.0).to(matrices.real.dtype)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)  # k o j, k j, k j i

    # The layer's modes turn as exp(-2 pi i k x) and are counted twice: hence the conjugates and the half.
    scale = (values * times_counted[:, None] / 2).sqrt()[:, :rank]
    outputs = (left[..., :rank] * scale[:, None]).conj().permute(1, 0, 2).flatten(1)  # o (k j)
    inputs = (right[:, :rank] * scale[..., None]).conj().flatten(0, 1)  # (k j) i
    layer = LinearSSM(channels_in, channels_out, modes=frequencies * rank, damping="absent").to(values)
    with torch.no_grad():
        layer.frequency.copy_((2 * math.pi * index.to(values.dtype)).repeat_interleave(rank))
        layer.output_weight.copy_(torch.view_as_real(outputs.resolve_conj()))
        layer.input_weight.copy_(torch.view_as_real(inputs.resolve_conj()))

    energy = times_counted[:, None] * values.square()
    dropped = values[:, rank:]
    return Recovery(
        layer,
        operator_error=dropped.max().item() if dropped.numel() else 0.0,
        relative_error=math.sqrt(energy[:, rank:].sum().item() / max(energy.sum().item(), torch.finfo().tiny)),
    )


def recover_ffno(
    fouriers: Sequence[FourierLayer], *, points: Sequence[int], rank: int | None = None
) -> FactorisedRecovery:
    """The sum of state-space layers that equals a factorised Fourier layer: one Fourier layer per grid axis, summed.

    With `rank`, each axis is approximated as well as that many modes per frequency allow, and the operator error of the
    sum is at most the sum of theirs.
    """
    if len(fouriers) != len(points):
        raise ValueError(f"`points` must give one number per axis: {len(fouriers)} layers, got {tuple(points)}.")
    axes = tuple(recover_fno(fourier, points=count, rank=rank) for fourier, count in zip(fouriers, points, strict=True))
    return FactorisedRecovery(LinearSweep([axis.layer for axis in axes]), axes)


def spectral_matrices(fourier: FourierLayer) -> Complex[Tensor, "k o i"]:
    """The matrices R_k of a Fourier layer; one without mixing of channels has diagonal ones."""
    if isinstance(fourier, SpectralConvolution):
        if fourier.axes != 1:
            raise ValueError(
                f"`fourier` convolves over {fourier.axes} axes at once; only layers along one axis are sums of "
                "state-space modes along that axis. Give the layers of a factorised model."
            )
        weight = torch.view_as_complex(fourier.weight.detach())[0]
        return weight if fourier.mix else torch.diag_embed(weight)
    weight = fourier.detach()
    if not weight.is_complex() and weight.ndim == 4 and weight.shape[-1] == 2:
        weight = torch.view_as_complex(weight.contiguous())
    if not weight.is_complex() or weight.ndim != 3:
        raise ValueError(
            "`fourier` must be a spectral convolution or its weights, complex (frequency, out, in) or real "
            f"(frequency, out, in, 2), got {weight.dtype} of shape {tuple(weight.shape)}."
        )
    return weight
