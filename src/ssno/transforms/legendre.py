"""Associated Legendre functions, orthonormal on the unit sphere, without the Condon-Shortley phase.

    Y_lm(theta, lambda) = P_lm(theta) exp(i m lambda),     integral |Y_lm|^2 = 1

    P_mm = sqrt((2m+1)/2m) sin(theta) P_{m-1,m-1},                                       P_00 = 1/sqrt(4 pi)
    P_lm = sqrt((4l^2-1)/(l^2-m^2)) [x P_{l-1,m} - sqrt(((l-1)^2-m^2)/(4(l-1)^2-1)) P_{l-2,m}],   x = cos(theta)

and the two functions of which vector harmonics are made, both without a division, hence right at the poles:

    D_lm = dP_lm/dtheta,        E_lm = m P_lm / sin(theta)

Axes: m order, l degree, k colatitude. Tables are zero where l < m.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Tables(NamedTuple):
    """Legendre functions and the two parts of their gradients, float64."""

    values: Float[np.ndarray, "m l k"]
    slopes: Float[np.ndarray, "m l k"]
    """D = dP/dtheta."""
    turns: Float[np.ndarray, "m l k"]
    """E = m P / sin(theta)."""


def legendre(x: Float[np.ndarray, " k"], *, degrees: int) -> Float[np.ndarray, "m l k"]:
    """P_lm at x = cos(theta) for all 0 <= m <= l < `degrees`. One loop over l, vectorised over m and k."""
    if degrees < 1:
        raise ValueError(f"`degrees` must be at least 1, got {degrees}.")
    sine = np.sqrt((1 - x) * (1 + x))
    p = np.zeros((degrees, degrees, len(x)))
    p[0, 0] = 1 / np.sqrt(4 * np.pi)
    for l in range(1, degrees):
        p[l, l] = np.sqrt((2 * l + 1) / (2 * l)) * sine * p[l - 1, l - 1]
        m = np.arange(l)
        outer = np.sqrt((4 * l**2 - 1) / (l**2 - m**2))
        inner = np.sqrt(((l - 1) ** 2 - m**2) / (4 * (l - 1) ** 2 - 1)) if l > 1 else np.zeros(1)
        p[:l, l] = outer[:, None] * (x * p[:l, l - 1] - inner[:, None] * p[:l, l - 2])
    return p


def legendre_tables(x: Float[np.ndarray, " k"], *, degrees: int) -> Tables:
    """P, D and E for all 0 <= m <= l < `degrees`."""
    p = legendre(x, degrees=degrees + 1)
    m, l = np.arange(1, degrees)[:, None], np.arange(degrees)[None, :]
    root = [np.sqrt(np.maximum(product, 0))[..., None] for product in ((l + m) * (l - m + 1), (l - m) * (l + m + 1))]
    slopes, turns = np.zeros((degrees, degrees, len(x))), np.zeros((degrees, degrees, len(x)))
    below, above = p[:-2, :-1], p[2:, :-1]  # orders m - 1 and m + 1 of the same degree
    slopes[1:] = (root[0] * below - root[1] * above) / 2
    slopes[0] = -np.sqrt(l * (l + 1.0)).T * p[1, :-1] if degrees > 1 else 0
    root = [np.sqrt(np.maximum(f, 0))[..., None] for f in ((l - m + 1) * (l - m + 2), (l + m + 1) * (l + m + 2))]
    turns[1:] = np.sqrt((2 * l + 1) / (2 * l + 3))[..., None] / 2 * (root[0] * p[:-2, 1:] + root[1] * p[2:, 1:])
    inside = np.arange(degrees)[:, None] <= np.arange(degrees)[None, :]
    return Tables(p[:-1, :-1], slopes * inside[..., None], turns * inside[..., None])
