"""The public shallow-water solver written out densely: harmonics of scipy, sums over all points, no fast transform.

Vector fields are taken apart by their potentials, divergences by integration against gradients of harmonics. Only the
equations, the truncation and the time stepping are shared with `ssno.pde`; grids, tables and formulas are not.
"""

import numpy as np
from scipy.special import sph_harm_y

RADIUS, ROTATION = 6.37122e6, 7.292e-5


class DenseSphere:
    """Harmonics (l, m) and their gradients at all points of a grid of Gauss latitudes without poles."""

    def __init__(self, degrees: int):
        self.l, self.m = np.array([(l, m) for l in range(degrees) for m in range(l + 1)]).T
        x, weights = np.polynomial.legendre.leggauss(2 * degrees)
        theta, lon = np.arccos(x), 2 * np.pi * np.arange(4 * degrees) / (4 * degrees)
        points = np.meshgrid(theta, lon, indexing="ij")
        self.theta = points[0].ravel()
        self.weights = np.repeat(weights, len(lon)) * 2 * np.pi / len(lon)
        sign = (-1.0) ** self.m[:, None]
        self.y = sign * sph_harm_y(self.l[:, None], self.m[:, None], self.theta, points[1].ravel())
        up = np.where(self.m < self.l, self.m + 1, 0)
        raised = sph_harm_y(self.l[:, None], up[:, None], self.theta, points[1].ravel()) * (self.m < self.l)[:, None]
        root = np.sqrt((self.l - self.m) * (self.l + self.m + 1.0))[:, None]
        cot = np.cos(self.theta) / np.sin(self.theta)
        self.y_theta = self.m[:, None] * cot * self.y + sign * root * np.exp(-1j * points[1].ravel()) * raised
        self.y_east = 1j * self.m[:, None] * self.y / np.sin(self.theta)
        self.double = np.where(self.m > 0, 2.0, 1.0)[:, None]
        self.laplacian = -self.l * (self.l + 1.0)

    def grid(self, modes: np.ndarray, basis: np.ndarray) -> np.ndarray:
        return (self.double * modes[:, None] * basis).real.sum(0)

    def project(self, field: np.ndarray, basis: np.ndarray) -> np.ndarray:
        return (np.conj(basis) * (self.weights * field)).sum(1)


def rate(sphere: DenseSphere, state: np.ndarray) -> np.ndarray:
    """(c, modes) of Phi, zeta, delta to their tendencies."""
    inverse = np.where(sphere.l > 0, 1 / np.where(sphere.l > 0, sphere.laplacian, 1), 0) * RADIUS
    psi, chi = inverse * state[1], inverse * state[2]
    u = sphere.grid(psi, sphere.y_theta) + sphere.grid(chi, sphere.y_east)
    v = sphere.grid(psi, sphere.y_east) - sphere.grid(chi, sphere.y_theta)
    phi, zeta = sphere.grid(state[0], sphere.y), sphere.grid(state[1], sphere.y)
    absolute = zeta + 2 * ROTATION * np.cos(sphere.theta)

    def divergence(east: np.ndarray, north: np.ndarray) -> np.ndarray:
        return (-sphere.project(east, sphere.y_east) + sphere.project(north, sphere.y_theta)) / RADIUS

    bernoulli = sphere.project(phi + (u**2 + v**2) / 2, sphere.y)
    return np.stack(
        [
            -divergence(phi * u, phi * v),
            -divergence(absolute * u, absolute * v),
            divergence(absolute * v, -absolute * u) - sphere.laplacian / RADIUS**2 * bernoulli,
        ]
    )


def public_frame(state: np.ndarray, *, degrees: int, dt: float, steps: int) -> np.ndarray:
    """One frame of the public scheme: Adams-Bashforth from a fresh start, hyperdiffusion after each step."""
    sphere = DenseSphere(degrees)
    decay = np.exp(-dt / 7200 * (sphere.laplacian / (degrees * (degrees - 1.0))) ** 4)
    rates: list[np.ndarray] = []
    for step in range(steps):
        rates.append(rate(sphere, state))
        if step == 0:
            change = rates[0]
        elif step == 1:
            change = (28 * rates[1] - 16 * rates[0]) / 12
        else:
            change = (23 * rates[-1] - 16 * rates[-2] + 5 * rates[-3]) / 12
        state = (state + dt * change) * np.stack([np.ones_like(decay), decay, decay])
    return state
