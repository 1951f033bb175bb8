"""Transforms and quadrature on tensors: spherical harmonics of scalars and vectors. Imports nothing of ours."""

from ssno.transforms.sphere import SphereTransform
from ssno.transforms.sphere_grid import GridKind, SphereGrid
from ssno.transforms.sphere_vectors import VectorTransform

__all__ = ["GridKind", "SphereGrid", "SphereTransform", "VectorTransform"]
