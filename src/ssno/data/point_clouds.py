"""Points of a cloud: which lie on the wall, and which are drawn for a training step.

Wall points are those with a normal; elsewhere the context fields normal_x and normal_y are exactly 0. (A velocity of
zero marks walls of viscous flow only, and never in forecasts.) Tokens of slice models are means over their input
points, so training and evaluation must sample points from the same distribution: uniformly from all of a case.

Axes: n case, t frame, k context field, p point.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssno.data.trajectories import Frames
from ssno.data.windows import sample_generator

POINTS = 4  # keeps the key of this draw apart from others


def wall_mask(context: Float[Tensor, "n t k p"], fields: Sequence[str]) -> Bool[Tensor, "n p"]:
    """Which points lie on the wall, from the context fields (physical units) of the first frame."""
    missing = [name for name in ("normal_x", "normal_y") if name not in fields]
    if missing:
        raise ValueError(
            f"Walls are found by the context field {missing[0]!r}, which these data lack: they have {tuple(fields)}."
        )
    normals = context[:, 0, [list(fields).index("normal_x"), list(fields).index("normal_y")]]
    return (normals != 0).any(dim=1)


def drawn_points(points: int, wanted: int, *key: int) -> Int[Tensor, " wanted"]:
    """`wanted` different ones of `points` points, in random order: a function of the key (seed, epoch, step)."""
    return torch.randperm(points, generator=sample_generator(*key, POINTS))[:wanted]


def at_points(frames: Frames, index: Int[Tensor, " wanted"]) -> Frames:
    """The same cases at some of their points."""
    return Frames(*(part[..., index] for part in frames))
