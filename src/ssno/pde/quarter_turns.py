"""A quarter of a flow that is unchanged by quarter turns about the centre of its periodic square.

    scalar(R x) = scalar(x),      velocity(R x) = R velocity(x),      R (x, y) = (-y, x)

Only the cells with x, y > 0 are stored; those beyond an edge are cells of the same quarter, turned. To the left of it
lies the quarter turned by R, and so it does to the right (through the periodic wall); below and above lies the quarter
turned back. One fourth of the work, and the symmetry is kept to the last bit.

Fields are (batch, channel, x, y) with channels (rho, u, v, ...) of which the second and third are a vector, or a
single scalar channel. Axes: b batch, c channel, x, y cells.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Cells = Float[Tensor, "b c x y"]


def turned_wrap(field: Float[Tensor, "b c n n"], dim: int, *, width: int) -> Cells:
    """Add `width` cells of the turned neighbours at both ends of dimension -2 or -1, as `finite_volume.wrap` does."""
    size = field.shape[-1]
    # A column of the turned quarter is a row of the quarter itself, so ghost cells are slices across, transposed.
    across = -3 - dim
    near = turn(field.narrow(across, 0, width), forward=dim == -2)
    far = turn(field.narrow(across, size - width, width), forward=dim == -2)
    return torch.cat([near.flip(dim), field, far.flip(dim)], dim=dim)


def unfold(quarter: Float[Tensor, "b c n n"]) -> Float[Tensor, "b c m m"]:
    """The whole square, m = 2 n, from the quarter with x, y > 0."""
    second = turn(quarter, forward=True).flip(-2)  # x < 0 < y
    right = torch.cat([turn(quarter, forward=False).flip(-1), quarter], dim=-1)
    third = quarter.flip(-2, -1)
    if quarter.shape[1] > 1:
        third[:, 1:3].neg_()
    return torch.cat([torch.cat([third, second], dim=-1), right], dim=-2)


def turn(field: Cells, *, forward: bool) -> Float[Tensor, "b c y x"]:
    """Swap the axes and turn the vector: by R (`forward`) to (-v, u), or back to (v, -u)."""
    turned = field.transpose(-2, -1)
    if field.shape[1] == 1:
        return turned
    u, v = turned[:, 1:2], turned[:, 2:3]
    return torch.cat([turned[:, :1], -v if forward else v, u if forward else -u, turned[:, 3:]], dim=1)
