"""Latitudes of a sphere and the weights that integrate over them:  integral of f(x) dx, x = cos(colatitude).

| rule | points | exact for polynomials in x up to degree |
|---|---|---|
| Gauss-Legendre | zeros of P_n | 2 n - 1 |
| Clenshaw-Curtis | colatitudes 0, pi/(n-1), ..., pi, poles included | n - 1 |

Both run from the north pole to the south pole, and their weights sum to 2.
"""

import numpy as np
from jaxtyping import Float

NEWTON_STEPS = 8

Rule = tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]
"""Points x and weights, float64."""


def gauss_legendre(points: int) -> Rule:
    """Zeros of P_n by Newton's method from cos(pi (k - 1/4) / (n + 1/2)); weights 2 / ((1 - x^2) P_n'(x)^2)."""
    _check(points, least=1)
    x = np.cos(np.pi * (np.arange(1, points + 1) - 0.25) / (points + 0.5))
    for _ in range(NEWTON_STEPS):
        value, slope = _legendre(points, x)
        x = x - value / slope
    _, slope = _legendre(points, x)
    weights = 2 / ((1 - x) * (1 + x) * slope**2)
    return (x - x[::-1]) / 2, (weights + weights[::-1]) / 2


def clenshaw_curtis(points: int) -> Rule:
    """w_j = c_j/N [1 - sum_k b_k cos(2 k theta_j) / (4 k^2 - 1)], N = n - 1; c = 1 at the poles, else 2."""
    _check(points, least=2)
    last = points - 1
    theta = np.pi * np.arange(points) / last
    k = np.arange(1, last // 2 + 1)
    b = np.where(2 * k == last, 1.0, 2.0)
    c = np.where(np.isin(np.arange(points), (0, last)), 1.0, 2.0)
    weights = c / last * (1 - np.cos(2 * np.outer(theta, k)) @ (b / (4 * k**2 - 1)))
    x = np.sin(np.pi * (last - 2 * np.arange(points)) / (2 * last))  # cos(theta), antisymmetric to the last bit
    return x, weights


def _legendre(degree: int, x: Float[np.ndarray, " k"]) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """P_n(x) and its derivative, by the three-term recurrence."""
    before, value = np.zeros_like(x), np.ones_like(x)
    for n in range(1, degree + 1):
        before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
    return value, degree * (before - x * value) / ((1 - x) * (1 + x))


def _check(points: int, *, least: int) -> None:
    if points < least:
        raise ValueError(f"`points` of a quadrature must be at least {least}, got {points}.")
