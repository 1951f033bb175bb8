"""Spherical harmonic transforms of real fields: Fourier along the rings, Legendre along the meridians.

    a_lm = 2 pi sum_k w_k P_lm(theta_k) f_m(theta_k),      f_m = (1/nlon) sum_i f exp(-i m lambda_i)
    f = sum_lm a_lm Y_lm:   f_m = sum_l P_lm a_lm, then an inverse Fourier sum

Only m >= 0 is stored; integral of f^2 over the unit sphere = sum_l |a_l0|^2 + 2 sum_{m>0} |a_lm|^2. `degrees=L` keeps
l, m < L; coefficients with l < m are zero. A truncation that aliases on the grid is refused
(`ssno.transforms.sphere`).

The Legendre sum is one matrix per order, so both transforms are a batched matrix product over m with everything else
as columns. That is fastest with space in front, (lon, lat, ...) and (m, l, ...): `analyse_leading` and
`synthesise_leading`; `analyse` and `synthesise` have it behind, (..., lat, lon) and (..., l, m).

Axes: lat colatitude from the north pole, lon longitude, m order, l degree.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

# Latitudes of a sphere and the weights that integrate over them:  integral of f(x) dx, x = cos(colatitude).
#
# | rule | points | exact for polynomials in x up to degree |
# |---|---|---|
# | Gauss-Legendre | zeros of P_n | 2 n - 1 |
# | Clenshaw-Curtis | colatitudes 0, pi/(n-1), ..., pi, poles included | n - 1 |
#
# Both run from the north pole to the south pole, and their weights sum to 2. Gauss weights here are right to 2e-13 at
# 256 points and 4e-12 at 720 (against long double), NumPy's leggauss to 2e-11 and 1e-9, SciPy's roots_legendre to
# 1e-10 and 5e-9; times are 13, 13 and 2 ms for 256 points, once per grid. Hence ours.

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


# Associated Legendre functions, orthonormal on the unit sphere, without the Condon-Shortley phase.
#
#     Y_lm(theta, lambda) = P_lm(theta) exp(i m lambda),     integral |Y_lm|^2 = 1
#
#     P_mm = sqrt((2m+1)/2m) sin(theta) P_{m-1,m-1},                                       P_00 = 1/sqrt(4 pi)
#     P_lm = sqrt((4l^2-1)/(l^2-m^2)) [x P_{l-1,m} - sqrt(((l-1)^2-m^2)/(4(l-1)^2-1)) P_{l-2,m}],   x = cos(theta)
#
# and the two functions of which vector harmonics are made, both without a division, hence right at the poles:
#
#     D_lm = dP_lm/dtheta,        E_lm = m P_lm / sin(theta)
#
# Axes: m order, l degree, k colatitude. Tables are zero where l < m. SciPy's sph_legendre_p_all (since 1.15) is as
# exact (orthonormal to 1e-14 for 170 degrees) and five times slower (314 against 59 ms), hence the recurrence.


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


# Grids on a sphere: rings of equally spaced longitudes, at Gauss or at equally spaced colatitudes.
#
# | kind | colatitudes | a transform needs | and for products of two fields |
# |---|---|---|---|
# | gauss | zeros of a Legendre polynomial | L <= nlat | 3 (L - 1) <= 2 nlat - 1 |
# | equiangular | 0, pi/(nlat-1), ..., pi | 2 L <= nlat + 1 | 3 (L - 1) <= nlat - 1 |
# | both | longitudes 0, 2 pi/nlon, ... | 2 L - 1 <= nlon | 3 (L - 1) + 1 <= nlon |
#
# L is the number of degrees, l = 0 ... L - 1. Beyond these bounds degrees alias into each other, with errors of order
# one and no other sign of trouble.

GridKind = Literal["gauss", "equiangular"]
"""Latitudes of a grid: Gauss-Legendre nodes, or equal angles with both poles."""


@dataclass(frozen=True)
class SphereGrid:
    """`nlat` rings from north to south with `nlon` points each."""

    nlat: int
    nlon: int
    kind: GridKind = "equiangular"

    def __post_init__(self) -> None:
        if self.kind not in get_args(GridKind):
            raise ValueError(f"`kind` of a sphere's grid must be one of {get_args(GridKind)}, got {self.kind!r}.")
        if self.nlat < 2 or self.nlon < 1:
            raise ValueError(f"A sphere's grid needs nlat >= 2 and nlon >= 1, got {self.nlat} x {self.nlon}.")

    @cached_property
    def rule(self) -> Rule:
        """cos(colatitude) of the rings, and weights that sum to 2."""
        return gauss_legendre(self.nlat) if self.kind == "gauss" else clenshaw_curtis(self.nlat)

    @property
    def colatitudes(self) -> Float[np.ndarray, " lat"]:
        """In radians, from the north pole."""
        if self.kind == "equiangular":
            return np.pi * np.arange(self.nlat) / (self.nlat - 1)
        return np.arccos(self.rule[0])

    @property
    def longitudes(self) -> Float[np.ndarray, " lon"]:
        """In radians, from 0."""
        return 2 * np.pi * np.arange(self.nlon) / self.nlon

    @property
    def area(self) -> Float[np.ndarray, " lat"]:
        """Share of the sphere that one point of each ring stands for; over all points they sum to 1."""
        return self.rule[1] / (2 * self.nlon)

    def largest(self, *, products: bool = False) -> int:
        """How many degrees L this grid carries; with `products`, also those of quadratic terms without aliasing."""
        exact = 2 * self.nlat - 1 if self.kind == "gauss" else self.nlat - 1
        if products:
            return min(exact, self.nlon - 1) // 3 + 1
        return min(exact // 2 + 1, (self.nlon + 1) // 2)

    def check_degrees(self, degrees: int, *, products: bool = False) -> None:
        """Refuse a truncation that aliases on this grid."""
        largest = self.largest(products=products)
        if not 1 <= degrees <= largest:
            purpose = "products of two fields" if products else "transforms"
            raise ValueError(
                f"`degrees` must lie between 1 and {largest} for {purpose} on the {self.kind} grid "
                f"{self.nlat} x {self.nlon}, got {degrees}: more would alias silently. "
                "Use a finer grid or fewer degrees."
            )


class SphereTransform(nn.Module):
    """Scalar fields on `grid` and their first `degrees` degrees of spherical harmonics.

    Tables are made in float64, kept in `dtype`, and not saved with a model.
    """

    values: Float[Tensor, "m lat l"]
    weighted: Float[Tensor, "m l lat"]

    def __init__(self, grid: SphereGrid, *, degrees: int, dtype: torch.dtype = torch.float32):
        super().__init__()
        grid.check_degrees(degrees)
        self.grid, self.degrees = grid, degrees
        x, weights = grid.rule
        table = legendre(x, degrees=degrees)  # m l lat
        self.register_buffer("values", as_table(table.transpose(0, 2, 1), dtype), persistent=False)
        self.register_buffer("weighted", as_table(2 * np.pi * weights * table, dtype), persistent=False)

    def analyse(self, field: Float[Tensor, "*batch lat lon"]) -> Complex[Tensor, "*batch l m"]:
        """Coefficients of a field."""
        return self.analyse_leading(field.movedim((-1, -2), (0, 1))).movedim((0, 1), (-1, -2))

    def synthesise(self, coefficients: Complex[Tensor, "*batch l m"]) -> Float[Tensor, "*batch lat lon"]:
        """The field with given coefficients; imaginary parts at m = 0 do not count."""
        return self.synthesise_leading(coefficients.movedim((-1, -2), (0, 1))).movedim((0, 1), (-1, -2))

    def analyse_leading(self, field: Float[Tensor, "lon lat *batch"]) -> Complex[Tensor, "m l *batch"]:
        """Coefficients of a field, with space in front."""
        return columns(self.weighted, self.orders(field))

    def synthesise_leading(self, coefficients: Complex[Tensor, "m l *batch"]) -> Float[Tensor, "lon lat *batch"]:
        """The field with given coefficients, with space in front."""
        return self.rings(columns(self.values, coefficients))

    def orders(self, field: Float[Tensor, "lon lat *batch"]) -> Complex[Tensor, "m lat *batch"]:
        """Fourier coefficients f_m of every ring, m < `degrees`."""
        if field.shape[:2] != (self.grid.nlon, self.grid.nlat):
            raise ValueError(
                f"The field has {field.shape[1]} colatitudes and {field.shape[0]} longitudes, but this transform is "
                f"for the grid {self.grid.nlat} x {self.grid.nlon}."
            )
        return torch.fft.rfft(field, dim=0, norm="forward")[: self.degrees]

    def rings(self, orders: Complex[Tensor, "m lat *batch"]) -> Float[Tensor, "lon lat *batch"]:
        """Undo `orders`."""
        return torch.fft.irfft(orders, n=self.grid.nlon, dim=0, norm="forward")


def columns(
    table: Float[Tensor, "m to from"], modes: Complex[Tensor, "m from *batch"]
) -> Complex[Tensor, "m to *batch"]:
    """One real matrix per order, applied to all columns, real and imaginary parts alike."""
    product = torch.bmm(table, torch.view_as_real(modes).flatten(2))
    return torch.view_as_complex(product.view(*product.shape[:2], *modes.shape[2:], 2))


def as_table(table: np.ndarray, dtype: torch.dtype) -> Tensor:
    """A constant of a transform: computed in float64, cast once."""
    return torch.from_numpy(np.ascontiguousarray(table)).to(dtype)


CPU, MOST_MADE = torch.device("cpu"), 16
transforms_made: dict[tuple[int, int, int, torch.dtype, GridKind, torch.device], SphereTransform] = {}


def transform_of(
    nlat: int,
    nlon: int,
    degrees: int,
    dtype: torch.dtype,
    kind: GridKind = "equiangular",
    *,
    device: torch.device = CPU,
) -> SphereTransform:
    """The transform of a grid, made once, with tables that gradients may pass whoever asked for it first.

    Kept in a plain dictionary, which `torch.compile` reads; it would trace into a function that `lru_cache` wraps.
    """
    key = (nlat, nlon, degrees, dtype, kind, device)
    if key not in transforms_made:
        while len(transforms_made) >= MOST_MADE:
            del transforms_made[next(iter(transforms_made))]
        with torch.inference_mode(False):
            transforms_made[key] = SphereTransform(SphereGrid(nlat, nlon, kind), degrees=degrees, dtype=dtype).to(
                device
            )
    return transforms_made[key]


# Vector fields on a sphere of radius a, by vorticity and divergence.
#
# For u towards the east and v towards the north, with vorticity zeta and divergence delta,
#
#     u_m = -a sum_l [D_lm zeta_lm + i E_lm delta_lm] / (l (l+1))
#     v_m = -a sum_l [i E_lm zeta_lm - D_lm delta_lm] / (l (l+1))
#
# and back, integrated by parts, so that a divergence has no mean and mass is conserved exactly,
#
#     div_lm  = (2 pi / a) sum_k w_k [i E_lm u_m + D_lm v_m],     curl_lm = (2 pi / a) sum_k w_k [i E_lm v_m - D_lm u_m]
#
# D and E are the two parts of a harmonic's gradient (`ssno.transforms.sphere`). The curl of (u, v) is the divergence of
# (v, -u), so one function serves both. Axes as in `ssno.transforms.sphere`, space in front.


class VectorTransform(SphereTransform):
    """Scalar and vector fields on `grid`; lengths in units in which the sphere's radius is `radius`."""

    velocities: Float[Tensor, "m lat l2"]
    divergences: Float[Tensor, "m l lat2"]
    laplacian: Float[Tensor, " l"]

    def __init__(self, grid: SphereGrid, *, degrees: int, radius: float = 1.0, dtype: torch.dtype = torch.float32):
        super().__init__(grid, degrees=degrees, dtype=dtype)
        if not 0 < radius < float("inf"):
            raise ValueError(f"`radius` must be a positive finite number, got {radius}.")
        x, weights = grid.rule
        _, slopes, turns = legendre_tables(x, degrees=degrees)  # m l lat
        l = np.arange(degrees)
        inverse = np.where(l > 0, -radius / np.maximum(l * (l + 1), 1), 0.0)[:, None]
        velocities = np.concatenate([inverse * slopes, inverse * turns], axis=1).transpose(0, 2, 1)
        divergences = 2 * np.pi / radius * np.concatenate([weights * turns, weights * slopes], axis=2)
        self.register_buffer("velocities", as_table(velocities, dtype), persistent=False)
        self.register_buffer("divergences", as_table(divergences, dtype), persistent=False)
        self.register_buffer("laplacian", as_table(-l * (l + 1) / radius**2, dtype), persistent=False)

    def velocity(
        self, vorticity: Complex[Tensor, "m l *batch"], divergence: Complex[Tensor, "m l *batch"]
    ) -> Float[Tensor, "lon lat 2 *batch"]:
        """(u, v) of given vorticity and divergence; what these have at l = 0 does not count."""
        upper = torch.stack([vorticity, -divergence], dim=2)
        lower = torch.stack([divergence, vorticity], dim=2) * 1j
        return self.rings(columns(self.velocities, torch.cat([upper, lower], dim=1)))

    def divergence(
        self, east: Complex[Tensor, "m lat *batch"], north: Complex[Tensor, "m lat *batch"]
    ) -> Complex[Tensor, "m l *batch"]:
        """Divergence of a vector field given by the `orders` of its parts; `divergence(north, -east)` is its curl."""
        return columns(self.divergences, torch.cat([east * 1j, north], dim=1))

    def divergence_and_curl(
        self, east: Float[Tensor, "lon lat *batch"], north: Float[Tensor, "lon lat *batch"]
    ) -> tuple[Complex[Tensor, "m l *batch"], Complex[Tensor, "m l *batch"]]:
        """Both, of a vector field on the grid."""
        u, v = self.orders(east), self.orders(north)
        return self.divergence(u, v), self.divergence(v, -u)
