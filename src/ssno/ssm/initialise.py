"""Where the learnable modes start: damping 1/2, and frequencies from one of three published rules or ours for grids.

With n = 0 ... d_state/2 - 1 (one mode per conjugate pair):

    lin   frequency = pi n                                   Fourier series on a unit interval
    inv   frequency = d_state/pi (d_state/(2n+1) - 1)        few high, many low frequencies
    legs  imaginary parts of the eigenvalues of the normal part of HiPPO-LegS, ascending
    grid  frequency = 2 pi n / d_state                       with step 1, every wave that a grid can carry

Steps are log-uniform, one per channel, so that channels start with different reach: a mode of damping 1/2 forgets
over 2/step grid points.

Axes: n state mode.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Initialisation = Literal["lin", "inv", "legs", "grid"]
"""How frequencies start (`INITIALISATIONS`)."""
INITIAL_DAMPING = 0.5


def lin(d_state: int) -> Float[Tensor, " n"]:
    """Evenly spaced frequencies."""
    return math.pi * torch.arange(d_state // 2, dtype=torch.float64)


def inv(d_state: int) -> Float[Tensor, " n"]:
    """Frequencies following an inverse law."""
    index = torch.arange(d_state // 2, dtype=torch.float64)
    return d_state / math.pi * (d_state / (2 * index + 1) - 1)


def legs(d_state: int) -> Float[Tensor, " n"]:
    """Frequencies of the HiPPO-LegS matrix after its rank-one part is removed.

    That normal part is -1/2 identity + S with S[i, j] = -sqrt((i + 1/2)(j + 1/2)) below the diagonal and the opposite
    above it, so the eigenvalues of the antisymmetric S are purely imaginary.
    """
    return torch.from_numpy(_legs(d_state).copy())


@cache
def _legs(d_state: int) -> Float[np.ndarray, " n"]:
    root = np.sqrt(np.arange(d_state) + 0.5)
    below = np.tril(np.outer(root, root), -1)
    return np.sort(np.linalg.eigvalsh(1j * (below.T - below)))[d_state // 2 :]


def grid(d_state: int) -> Float[Tensor, " n"]:
    """Evenly spaced frequencies, below pi per grid point while steps are at most 1, so that none is aliased."""
    return 2 * math.pi / d_state * torch.arange(d_state // 2, dtype=torch.float64)


INITIALISATIONS: dict[Initialisation, Callable[[int], Tensor]] = {"lin": lin, "inv": inv, "legs": legs, "grid": grid}
"""Frequencies of a number of states, by name."""


def log_steps(channels: int, *, smallest: float, largest: float) -> Float[Tensor, " h"]:
    """Draw the logarithm of one step per channel, uniformly between log(smallest) and log(largest)."""
    low, high = math.log(smallest), math.log(largest)
    return low + (high - low) * torch.rand(channels, dtype=torch.float64)
