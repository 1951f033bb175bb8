"""Writers of tiny files with the keys, axes, types and oddities of the public formats."""

from pathlib import Path

import h5py
import numpy as np
from scipy.io import netcdf_file

NETCDF_DIMENSION = "This is a netCDF dimension but not a netCDF variable.        16"


def field(*shape: int, seed: int = 0, dtype: str = "<f4") -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def pdebench_burgers(path: Path, *, samples: int = 5, frames: int = 21, points: int = 16) -> np.ndarray:
    """`1D_Burgers_Sols_Nu0.001.hdf5`: one time more than frames, cell centres in float32, `Nu` on the root."""
    values = field(samples, frames, points)
    with h5py.File(path, "w") as file:
        file["tensor"] = values
        file["x-coordinate"] = ((np.arange(points) + 0.5) / points).astype(np.float32)
        file["t-coordinate"] = (0.01 * np.arange(frames + 1)).astype(np.float32)
        file.attrs["Nu"] = 0.001
    return values


def lpsda_ks(path: Path, split: str, *, samples: int = 4, frames: int = 26, points: int = 32) -> np.ndarray:
    """`KS_train_2048.h5`: float64, a group named after the split, coordinates per sample, no viscosity."""
    values = field(samples, frames, points, dtype="<f8")
    with h5py.File(path, "w") as file:
        group = file.create_group(split)
        group[f"pde_{frames}-{points}"] = values
        group["x"] = np.tile(64 * np.arange(points) / points, (samples, 1))
        group["t"] = np.tile(np.linspace(0, 2.5, frames), (samples, 1))
        group["dx"] = np.full(samples, 64 / points)
        group["dt"] = np.full(samples, 0.1)
    return values


def the_well(path: Path, *, samples: int = 3, frames: int = 5, grid: tuple[int, int] = (6, 4)) -> dict[str, np.ndarray]:
    """A file of The Well: scalars, vectors, tensors, fields without some axes, two kinds of boundary."""
    arrays = {
        "t0_fields/density": field(samples, frames, *grid, seed=1),
        "t0_fields/profile": field(samples, frames, grid[0], seed=2),
        "t0_fields/mask": field(*grid, seed=3),
        "t1_fields/velocity": field(samples, frames, *grid, 2, seed=4),
        "t2_fields/stress": field(samples, frames, *grid, 2, 2, seed=5),
    }
    flags = {
        "density": (True, True, [True, True]),
        "profile": (True, True, [True, False]),
        "mask": (False, False, [True, True]),
        "velocity": (True, True, [True, True]),
        "stress": (True, True, [True, True]),
    }
    with h5py.File(path, "w") as file:
        file.attrs.update({"dataset_name": "wake", "grid_type": "cartesian", "n_spatial_dims": 2})
        file.attrs.update({"n_trajectories": samples, "simulation_parameters": ["Re"], "Re": 100.0})
        dimensions = file.create_group("dimensions")
        dimensions.attrs["spatial_dims"] = ["x", "y"]
        dimensions["time"] = 0.25 * np.arange(frames, dtype=np.float32)
        dimensions["x"] = (2.0 * np.arange(grid[0]) / grid[0]).astype(np.float32)
        dimensions["y"] = ((np.arange(grid[1]) + 0.5) / grid[1]).astype(np.float32)
        for axis in "xy":
            dimensions[axis].attrs.update({"sample_varying": False, "time_varying": False})
        for kind, axis in (("PERIODIC", "x"), ("WALL", "y")):
            group = file.create_group(f"boundary_conditions/{axis}_{kind.lower()}")
            group.attrs.update({"bc_type": kind, "associated_dims": [axis], "sample_varying": False})
            group["mask"] = np.zeros(4, bool)
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = ["angle", "Re"]
        scalars["angle"] = np.arange(samples, dtype=np.float64)
        scalars["angle"].attrs.update({"sample_varying": True, "time_varying": False})
        scalars["Re"] = 100.0
        for order in range(3):
            names = [name.split("/")[1] for name in arrays if name.startswith(f"t{order}")]
            file.create_group(f"t{order}_fields").attrs["field_names"] = names
        for name, values in arrays.items():
            file[name] = values
            sample, time, dims = flags[name.split("/")[1]]
            file[name].attrs.update({"sample_varying": sample, "time_varying": time, "dim_varying": dims})
    return arrays


def the_well_3d(
    path: Path, *, samples: int = 2, frames: int = 3, grid: tuple[int, ...] = (4, 6, 8)
) -> dict[str, np.ndarray]:
    """A file of MHD_64: a scalar and two vectors in a periodic box, two numbers that hold for the whole file."""
    arrays = {
        "t0_fields/density": field(samples, frames, *grid, seed=1),
        "t1_fields/magnetic_field": field(samples, frames, *grid, 3, seed=2),
        "t1_fields/velocity": field(samples, frames, *grid, 3, seed=3),
    }
    with h5py.File(path, "w") as file:
        file.attrs.update({"dataset_name": "MHD_64", "grid_type": "cartesian", "n_spatial_dims": 3})
        file.attrs.update({"n_trajectories": samples, "simulation_parameters": ["Ma", "Ms"], "Ma": 0.7, "Ms": 1.5})
        dimensions = file.create_group("dimensions")
        dimensions.attrs["spatial_dims"] = ["x", "y", "z"]
        dimensions["time"] = 0.01 * np.arange(frames, dtype=np.float32)
        for axis, points in zip("xyz", grid, strict=True):
            dimensions[axis] = (np.arange(points) / points).astype(np.float32)
            dimensions[axis].attrs.update({"sample_varying": False, "time_varying": False})
            group = file.create_group(f"boundary_conditions/{axis}_periodic")
            group.attrs.update({"bc_type": "PERIODIC", "associated_dims": [axis], "sample_varying": False})
            group["mask"] = np.ones(points, bool)
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = ["Ma", "Ms"]
        scalars["Ma"], scalars["Ms"] = 0.7, 1.5
        for order in range(3):
            names = [name.split("/")[1] for name in arrays if name.startswith(f"t{order}")]
            file.create_group(f"t{order}_fields").attrs["field_names"] = names
        for name, values in arrays.items():
            file[name] = values
            file[name].attrs.update({"sample_varying": True, "time_varying": True, "dim_varying": [True] * 3})
    return arrays


def netcdf4(path: Path, *, frames: int = 6, grid: tuple[int, int] = (4, 8)) -> np.ndarray:
    """A NetCDF-4 file as HDF5: dimension scales, a dimension without variable, packed integers with a fill value."""
    packed = np.random.default_rng(0).integers(-1000, 1000, size=(frames, *grid)).astype("<i2")
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(frames, dtype=np.float64) * 3
        file["lat"] = np.linspace(-60, 60, grid[0])
        file.create_dataset("lon", (grid[1],), dtype=">f4")
        file["temperature"] = packed
        file["pressure"] = packed + np.int16(1)
        for name in ("time", "lat", "lon"):
            file[name].make_scale(NETCDF_DIMENSION if name == "lon" else name)
        for name in ("temperature", "pressure"):
            file[name].attrs.update({"scale_factor": 0.01, "add_offset": 280.0})
            file[name].attrs["_FillValue"] = np.array([-9999], "<i2")
            for axis, dim in enumerate(("time", "lat", "lon")):
                file[name].dims[axis].attach_scale(file[dim])
    return packed


def netcdf3(path: Path, *, frames: int = 6, points: int = 8) -> np.ndarray:
    """A classic NetCDF file: big-endian, time unlimited (records interleave the variables)."""
    values = field(frames, points)
    with netcdf_file(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", points)
        for name, numbers, dims in (
            ("u", values, ("time", "x")),
            ("v", -values, ("time", "x")),
            ("time", 0.5 * np.arange(frames), ("time",)),
            ("x", 2.0 * np.arange(points), ("x",)),
        ):
            file.createVariable(name, "f", dims)[:] = numbers
    return values
