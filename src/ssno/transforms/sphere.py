"""Spherical harmonic transforms of real fields: Fourier along the rings, Legendre along the meridians.

    a_lm = 2 pi sum_k w_k P_lm(theta_k) f_m(theta_k),      f_m = (1/nlon) sum_i f exp(-i m lambda_i)
    f = sum_lm a_lm Y_lm:   f_m = sum_l P_lm a_lm, then an inverse Fourier sum

Only m >= 0 is stored; integral of f^2 over the unit sphere = sum_l |a_l0|^2 + 2 sum_{m>0} |a_lm|^2. `degrees=L` keeps
l, m < L; coefficients with l < m are zero. A truncation that aliases on the grid is refused
(`ssno.transforms.sphere_grid`).

The Legendre sum is one matrix per order, so both transforms are a batched matrix product over m with everything else
as columns. That is fastest with space in front, (lon, lat, ...) and (m, l, ...): `analyse_leading` and
`synthesise_leading`; `analyse` and `synthesise` have it behind, (..., lat, lon) and (..., l, m).

Axes: lat colatitude from the north pole, lon longitude, m order, l degree.
"""

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from ssno.transforms.legendre import legendre
from ssno.transforms.sphere_grid import GridKind, SphereGrid


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


@lru_cache(maxsize=16)
def transform_of(
    nlat: int, nlon: int, degrees: int, dtype: torch.dtype, kind: GridKind = "equiangular"
) -> SphereTransform:
    """The transform of a grid, made once, with tables that gradients may pass whoever asked for it first."""
    with torch.inference_mode(False):
        return SphereTransform(SphereGrid(nlat, nlon, kind), degrees=degrees, dtype=dtype)
