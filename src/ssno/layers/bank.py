"""The kernels of all scans of a model, sampled at once.

A kernel costs little, but many small operations; sixteen of them cost sixteen times as many. Systems of one kind on
axes of one length are therefore sampled together (`ssno.layers.modes.kernels_of`), as more rows of one computation.

Axes: d direction, h channel, l grid point.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ssno.layers.gated import ScanWeights, mixing_weights, with_skip
from ssno.layers.modes import kernels_of
from ssno.layers.s4d import S4DBlock
from ssno.ssm.kernel import Boundary
from ssno.ssm.scan import CHUNKED_FROM, Kernels


class Request(NamedTuple):
    """One scan: the systems that share its lines (one, or one per direction), the length of a line, its spacing."""

    systems: tuple[S4DBlock, ...]
    length: int
    spacing: float


WeightsPerScan = Sequence[ScanWeights] | None
"""Of one block, in the order of its scans; None if they are to be made on the way."""


def sample(requests: Sequence[Request]) -> list[ScanWeights]:
    """Weights for every request, in order."""
    systems = [system for request in requests for system in request.systems]
    counts = [len(request.systems) for request in requests]
    mixing = (stacked.split(counts) for stacked in mixing_weights(systems))
    return [ScanWeights(*parts) for parts in zip(sample_kernels(requests), *mixing, strict=True)]


def sample_kernels(requests: Sequence[Request]) -> list[Kernels | None]:
    """Kernels for every request, in order."""
    found: list[Kernels | None] = [None] * len(requests)
    groups: dict[tuple[int, float, Boundary], list[int]] = {}
    for index, request in enumerate(requests):
        if request.length < CHUNKED_FROM:
            kind = (request.length, request.spacing, request.systems[0].boundary)
            groups.setdefault(kind, []).append(index)
    for (length, spacing, boundary), members in groups.items():
        systems = [system for index in members for system in requests[index].systems]
        kernels = kernels_of([system.modes for system in systems], length, spacing=spacing, boundary=boundary)
        taps = with_skip(kernels, torch.stack([system.skip for system in systems]))
        counts = [len(requests[index].systems) for index in members]
        for index, part in zip(members, taps.split(counts), strict=True):
            directions = tuple(system.direction for system in requests[index].systems)
            found[index] = Kernels(part, directions, boundary)
    return found
