"""Files as users have them, written by tests."""

import h5py
import numpy as np
from scipy.io import netcdf_file

VALUES = np.random.default_rng(0).normal(size=(5, 6, 8, 4))
EQUAL = np.random.default_rng(1).normal(size=(6, 6, 6))  # as many trajectories as frames and points


def save(path, **arrays):
    np.savez(path, u=VALUES, **arrays)
    return path


def ramps(clocks: np.ndarray) -> np.ndarray:
    """u = slope * (time since the first frame) + x: linear in time, so that interpolation is exact."""
    slope = np.arange(1, len(clocks) + 1)[:, None, None]
    return slope * (clocks - clocks[:, :1])[:, :, None] + np.arange(8.0)


def grouped(path, *, clocks=None):
    """A group for each of 11 runs, with its feed rate as attribute; the grid is shared."""
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(8) / 8
        for run in range(11):
            group = file.create_group(f"run{run}")
            group.attrs["feed"] = 0.01 * run
            group["time"] = np.arange(6.0) if clocks is None else clocks[run]
            group["u"] = np.full((len(group["time"]), 8), float(run))
            group["kill"] = 0.5 * run
    return path


def classic(path, arrays, **sizes):
    """A classic NetCDF file with these named dimensions."""
    with netcdf_file(path, "w") as file:
        for name, size in sizes.items():
            file.createDimension(name, size)
        for name, (values, dims) in arrays.items():
            file.createVariable(name, "f4", dims)[:] = values
    return path
