"""Grids on a sphere: rings of equally spaced longitudes, at Gauss or at equally spaced colatitudes.

| kind | colatitudes | a transform needs | and for products of two fields |
|---|---|---|---|
| gauss | zeros of a Legendre polynomial | L <= nlat | 3 (L - 1) <= 2 nlat - 1 |
| equiangular | 0, pi/(nlat-1), ..., pi | 2 L <= nlat + 1 | 3 (L - 1) <= nlat - 1 |
| both | longitudes 0, 2 pi/nlon, ... | 2 L - 1 <= nlon | 3 (L - 1) + 1 <= nlon |

L is the number of degrees, l = 0 ... L - 1. Beyond these bounds degrees alias into each other, with errors of order
one and no other sign of trouble.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from ssno.transforms.quadrature import Rule, clenshaw_curtis, gauss_legendre

GridKind = Literal["gauss", "equiangular"]


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
