"""The cosine transform (DCT-II) of values at the centres of N cells between two walls, by one FFT of N points.

    X_k = sum over n of  x_n cos(pi k (2 n + 1) / (2 N)),        k = 0 ... N - 1

    mean of x^2 = (X_0^2 + 2 X_1^2 + ... + 2 X_{N-1}^2) / N^2    (Parseval)

Even values of n come first, then odd ones backwards; the FFT of these, turned by exp(-i pi k / 2 N), has X as its real
part (Makhoul 1980).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def cosine_transform(values: Float[Tensor, "..."], *, dim: int) -> Float[Tensor, "..."]:
    """The transform along one axis."""
    points, device = values.shape[dim], values.device
    number = torch.arange(points, device=device)
    order = torch.cat([number[::2], number[1::2].flip(0)])
    angle = -math.pi / (2 * points) * number.to(values.dtype)
    turn = torch.polar(torch.ones_like(angle), angle)
    modes = torch.fft.fft(values.index_select(dim, order), dim=dim)
    return (modes.movedim(dim, -1) * turn).real.movedim(-1, dim)
