"""Transforms and quadrature on tensors: spherical harmonics of scalars and vectors. Imports nothing of ours."""

from ssno.transforms.sphere import GridKind, SphereGrid, SphereTransform, VectorTransform

__all__ = ["GridKind", "SphereGrid", "SphereTransform", "VectorTransform"]
