"""Complex numbers as pairs of real tensors.

State-space modes are complex, but complex tensors do not fit into every file format, compiler and device, and complex
autograd is slower on a CPU. Everything in `ssno.ssm` therefore computes with a real and an imaginary part.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Pair(NamedTuple):
    """The complex tensor `re + i im`."""

    re: Float[Tensor, "*shape"]
    im: Float[Tensor, "*shape"]


def pair(packed: Float[Tensor, "*shape 2"]) -> Pair:
    """Unpack a real tensor whose last axis holds (real, imaginary)."""
    return Pair(packed[..., 0], packed[..., 1])


def times(a: Pair, b: Pair) -> Pair:
    """The complex product a b."""
    return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def divide(a: Pair, b: Pair) -> Pair:
    """The complex quotient a / b."""
    size = b.re.square() + b.im.square()
    return Pair((a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size)


def polar(log_modulus: Float[Tensor, "*shape"], angle: Float[Tensor, "*shape"]) -> Pair:
    """The complex number exp(log_modulus + i angle)."""
    modulus = torch.exp(log_modulus)
    return Pair(modulus * torch.cos(angle), modulus * torch.sin(angle))


def one_minus_polar(log_modulus: Float[Tensor, "*shape"], angle: Float[Tensor, "*shape"]) -> Pair:
    """1 - exp(log_modulus + i angle), without the cancellation that subtracting would cause near 1."""
    modulus = torch.exp(log_modulus)
    versine = 2 * torch.sin(angle / 2).square()  # 1 - cos(angle)
    return Pair(modulus * versine - torch.expm1(log_modulus), -modulus * torch.sin(angle))
