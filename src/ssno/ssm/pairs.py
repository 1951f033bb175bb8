"""Complex numbers as pairs of real tensors.

State-space modes are complex, but complex tensors do not fit into every file format, compiler and device, and complex
autograd is slower on a CPU. Everything in `ssno.ssm` therefore computes with a real and an imaginary part.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class ComplexPair(NamedTuple):
    """The complex tensor `re + i im`."""

    re: Float[Tensor, "*shape"]
    im: Float[Tensor, "*shape"]


def as_pair(packed: Float[Tensor, "*shape 2"]) -> ComplexPair:
    """Unpack a real tensor whose last axis holds (real, imaginary)."""
    return ComplexPair(packed[..., 0], packed[..., 1])


def complex_mul(a: ComplexPair, b: ComplexPair) -> ComplexPair:
    """The complex product a b."""
    return ComplexPair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def divide(a: ComplexPair, b: ComplexPair) -> ComplexPair:
    """The complex quotient a / b."""
    size = b.re.square() + b.im.square()
    return ComplexPair((a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size)


def polar(log_modulus: Float[Tensor, "*shape"], angle: Float[Tensor, "*shape"]) -> ComplexPair:
    """The complex number exp(log_modulus + i angle)."""
    modulus = torch.exp(log_modulus)
    return ComplexPair(modulus * torch.cos(angle), modulus * torch.sin(angle))


def one_minus_polar(log_modulus: Float[Tensor, "*shape"], angle: Float[Tensor, "*shape"]) -> ComplexPair:
    """1 - exp(log_modulus + i angle), without the cancellation that subtracting would cause near 1."""
    modulus = torch.exp(log_modulus)
    versine = 2 * torch.sin(angle / 2).square()  # 1 - cos(angle)
    return ComplexPair(modulus * versine - torch.expm1(log_modulus), -modulus * torch.sin(angle))
