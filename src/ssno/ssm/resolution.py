"""From the grid that a kernel was learned on to the axis that it is applied to: other grids, and what lies at the ends.

A kernel that was learned on n0 points is known by its discrete spectrum there, at |m| <= n0 / 2. On n points the same
axis has the same waves, and more of them or fewer. With transfer "spectrum" a layer does the same to every wave that
both grids resolve, because its spectrum is continued periodically:

    K[m] = K0[m mod n0],        |m| <= n / 2

On a grid that is r times as fine this puts r - 1 zeros between the taps: the points form r interleaved copies of the
learned grid, and each is scanned by itself, with the same numbers as before. On coarser grids the waves that are gone
are left out. With transfer "resample" the continuous kernel is sampled with the new spacing; its spectrum then differs
where it matters, because decay lengths of a cell and the edge of a one-sided kernel are not resolved by the grid that
learned them.

At walls a line is continued by its mirror image, with the same sign (neumann) or the opposite one (dirichlet);
twice as long, it is a circle. On axes with zeros outside (zero) a continued kernel is applied to the line
padded with zeros, since it may look a little ahead.

Axes: any leading ones, then l, the grid point; o and i: what comes before and after the scanned axis.
"""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base.checks import in_units
from ssno.ssm.kernel import LINEAR_CONVOLUTION, WALLS, Boundary

Transfer = Literal["spectrum", "resample"]
Extension = Literal["zeros", "neumann", "dirichlet"]


class Sampling(NamedTuple):
    """How a kernel is made for an axis, and how the axis is brought before it."""

    points: int
    """How many taps of the kernel are sampled,"""
    spacing: float = 1.0
    """how far apart, in units of the learned spacing."""
    copies: int = 1
    """Into how many interleaved copies of the learned grid the axis falls."""
    extension: Extension | None = None
    """What continues a line to twice its length, so that it is a circle."""
    length: int | None = None
    """On how many points of a circle the kernel is continued to; None if it stays as it is sampled."""


COARSEST = 1024
"""How much coarser a grid may be than the learned one: kernels are sampled on the learned grid, which takes memory."""


def choose_sampling(length: int, spacing: float, *, boundary: Boundary, transfer: Transfer) -> Sampling:
    """The sampling of an axis of `length` points whose spacing is in units of the learned one."""
    twice = 2 if boundary in WALLS else 1
    extension: Extension | None = boundary if boundary == "neumann" or boundary == "dirichlet" else None
    if spacing == 1 or transfer == "resample":
        return Sampling(twice * length, spacing, extension=extension)
    copies = sublattices(length, spacing)
    if copies is not None:
        return Sampling(twice * length // copies, copies=copies, extension=extension)
    points, stretched = learned_grid(length, spacing)
    if boundary in LINEAR_CONVOLUTION:
        return Sampling(points, stretched, extension="zeros", length=2 * length)
    return Sampling(twice * points, stretched, extension=extension, length=twice * length)


def sublattices(length: int, spacing: float) -> int | None:
    """Into how many copies of the learned grid an axis falls; None if the grids do not fit into one another."""
    copies = in_units(1.0, spacing, rounding=1e-6)
    return int(copies) if copies >= 1 and copies.is_integer() and length % copies == 0 else None


def learned_grid(length: int, spacing: float) -> tuple[int, float]:
    """Points and relative spacing of the learned grid on this axis.

    An axis that no whole number of learned cells fills gets the nearest number, slightly stretched.
    """
    if spacing > COARSEST:
        raise ValueError(
            f"The points of this grid are {spacing:.3g} times as far apart as those of training, more than {COARSEST}. "
            "Give lengths in the units of the training data."
        )
    points = max(1, round(length * spacing))
    return points, length * spacing / points


def fit_taps(taps: Float[Tensor, "*k m"], sampling: Sampling) -> Float[Tensor, "*k l"]:
    """Sampled taps as the scan needs them."""
    if sampling.length is None:
        return taps
    if sampling.extension == "zeros":
        taps = torch.cat([taps, torch.zeros_like(taps)], dim=-1)
    return continued(taps, sampling.length)


def continued(taps: Float[Tensor, "*k m"], length: int) -> Float[Tensor, "*k l"]:
    """The taps of a circular kernel on `length` points, its spectrum continued periodically."""
    learned = taps.shape[-1]
    spectrum = torch.fft.rfft(taps)
    wave = torch.arange(length // 2 + 1, device=taps.device) % learned
    negative = wave > learned // 2  # waves of the other sign: the conjugate
    found = spectrum[..., torch.where(negative, learned - wave, wave)]
    return torch.fft.irfft(torch.where(negative, found.conj(), found), n=length)


def extended(x: Float[Tensor, "h o l i"], extension: Extension | None) -> Float[Tensor, "h o m i"]:
    """Lines continued to twice their length; as they are without an extension."""
    if extension is None:
        return x
    tail = torch.zeros_like(x) if extension == "zeros" else x.flip(2) if extension == "neumann" else -x.flip(2)
    return torch.cat([x, tail], dim=2)
