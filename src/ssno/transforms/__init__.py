"""Transforms and quadrature on tensors: periodic resampling, spherical harmonics. Imports nothing of ours."""

from ssno.transforms.periodic import cosine_transform, resample
from ssno.transforms.sphere import GridKind, SphereGrid, SphereTransform, VectorTransform

__all__ = ["GridKind", "SphereGrid", "SphereTransform", "VectorTransform", "cosine_transform", "resample"]
