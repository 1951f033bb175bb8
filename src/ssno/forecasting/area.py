"""How much of the domain a grid point stands for: the same on Cartesian grids, the weight of its ring on a sphere."""

import torch
from torch import Tensor

from ssno.data.trajectories import Trajectories
from ssno.transforms.sphere_grid import SphereGrid


def areas(data: Trajectories) -> Tensor | None:
    """Share of the sphere per point, (lat, 1), summing to 1 over the grid; None where all points weigh the same."""
    if data.grid_type != "sphere":
        return None
    nlat, nlon = (axis.points for axis in data.axes)
    return torch.from_numpy(SphereGrid(nlat, nlon).area)[:, None]
