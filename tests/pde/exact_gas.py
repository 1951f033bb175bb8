"""The exact solution of Euler's Riemann problem in one dimension: two constant states that meet at x = 0.

The pressure p* between the outer waves solves  f(p, left) + f(p, right) + u_right - u_left = 0  with

    f(p, K) = (p - p_K) sqrt(A_K / (p + B_K))                      p > p_K, a shock; A = 2 / ((gamma + 1) rho_K),
                                                                   B = p_K (gamma - 1) / (gamma + 1)
    f(p, K) = 2 c_K / (gamma - 1) [(p / p_K)^((gamma - 1) / 2 gamma) - 1]      otherwise, a rarefaction

f grows with p, so the root is unique and bracketing finds it. Not for states between which a vacuum opens.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq
from torch import Tensor


@dataclass(frozen=True)
class GasState:
    """Density, velocity and pressure."""

    density: float
    velocity: float
    pressure: float


def star_region(left: GasState, right: GasState, *, gamma: float = 1.4) -> tuple[float, float]:
    """Pressure and velocity between the two outer waves."""

    def mismatch(pressure: float) -> float:
        return _jump(pressure, left, gamma) + _jump(pressure, right, gamma) + right.velocity - left.velocity

    top = max(left.pressure, right.pressure)
    while mismatch(top) < 0:
        top *= 2
    pressure = float(brentq(mismatch, 0.0, top, xtol=1e-14, rtol=1e-14))
    speed = 0.5 * (left.velocity + right.velocity + _jump(pressure, right, gamma) - _jump(pressure, left, gamma))
    return pressure, speed


def riemann_solution(
    left: GasState, right: GasState, ray: Float[np.ndarray, " l"], *, gamma: float = 1.4
) -> Float[np.ndarray, "3 l"]:
    """Density, velocity and pressure along the rays x / t = `ray`."""
    pressure, speed = star_region(left, right, gamma=gamma)
    result = np.empty((3, len(ray)))
    on_left = ray < speed
    result[:, on_left] = _fan(left, pressure, speed, ray[on_left], gamma)
    # The right half is the mirror image of a left half.
    mirrored = GasState(right.density, -right.velocity, right.pressure)
    result[:, ~on_left] = _fan(mirrored, pressure, -speed, -ray[~on_left], gamma)
    result[1, ~on_left] *= -1
    return result


def _jump(pressure: float, side: GasState, gamma: float) -> float:
    """f(p, K) of the module's top."""
    if pressure > side.pressure:
        a = 2 / ((gamma + 1) * side.density)
        b = side.pressure * (gamma - 1) / (gamma + 1)
        return (pressure - side.pressure) * float(np.sqrt(a / (pressure + b)))
    sound = np.sqrt(gamma * side.pressure / side.density)
    return float(2 * sound / (gamma - 1) * ((pressure / side.pressure) ** ((gamma - 1) / (2 * gamma)) - 1))


def _fan(
    side: GasState, pressure: float, speed: float, ray: Float[np.ndarray, " l"], gamma: float
) -> Float[np.ndarray, "3 l"]:
    """The states left of the contact, seen from the left state."""
    rho, u, p = side.density, side.velocity, side.pressure
    sound, ratio = np.sqrt(gamma * p / rho), pressure / p
    outside = np.repeat([[rho], [u], [p]], len(ray), axis=1)
    if ratio > 1:
        strength = (gamma - 1) / (gamma + 1)
        inner = rho * (ratio + strength) / (strength * ratio + 1)
        shock = u - sound * np.sqrt((gamma + 1) / (2 * gamma) * ratio + (gamma - 1) / (2 * gamma))
        return np.where(ray < shock, outside, np.array([[inner], [speed], [pressure]]))
    inner = rho * ratio ** (1 / gamma)
    tail = speed - sound * ratio ** ((gamma - 1) / (2 * gamma))
    local = 2 / (gamma + 1) * (sound + (gamma - 1) / 2 * (u - ray))  # sound speed inside the fan
    local = np.maximum(local, 0)
    scale = local / sound
    fan = np.stack([rho * scale ** (2 / (gamma - 1)), ray + local, p * scale ** (2 * gamma / (gamma - 1))])
    star = np.array([[inner], [speed], [pressure]])
    return np.where(ray < u - sound, outside, np.where(ray < tail, fan, star))


def to_conserved(primitive: Float[Tensor, "b 5 *cells"], *, gamma: float) -> Float[Tensor, "b 5 *cells"]:
    """The inverse of `ssno.pde.gas.to_primitive`, for states above the floor."""
    density, u, v, pressure, tracer = primitive.unbind(1)
    energy = pressure / (gamma - 1) + 0.5 * density * (u * u + v * v)
    return torch.stack([density, density * u, density * v, energy, density * tracer], dim=1)
