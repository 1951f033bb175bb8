"""Point clouds on disk: the two-frame layout goes through shards unchanged, whoever makes them."""

from pathlib import Path

import numpy as np
import pytest

from ssno.data.datasets import Plan, build_plan, build_problem, folder_name
from ssno.data.errors import DataError
from ssno.data.generation import generate
from ssno.data.load import load_dataset
from ssno.data.splits import trajectory_rng
from ssno.data.trajectories import Trajectories, concatenate
from ssno.pde.geometry import POINT_CLOUD
from ssno.pde.problems.kt_foil import KTFoil

CLOUDS = KTFoil(points=96, wall_points=16)
ORIGIN = {"ssno": "test", "commit": "test"}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.h5")}


def test_cases_come_back_from_shards_and_do_not_depend_on_batches(tmp_path: Path) -> None:
    plan = Plan(CLOUDS, {"train": 3, "valid": 1, "test": 2}, per_shard=2)
    generate(plan, tmp_path / "one", jobs=1, batch=1, origin=ORIGIN)
    generate(plan, tmp_path / "two", jobs=1, batch=3, origin=ORIGIN)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    data = load_dataset(tmp_path / "one", "train")
    assert data.geometry is POINT_CLOUD
    assert data.in_memory().geometry is POINT_CLOUD
    assert data.shape == (3, 2, 3, 96)
    drawn = CLOUDS.draw(trajectory_rng(0, "train", 2))
    solution, frames = CLOUDS.solve([drawn]), data.read([2])
    np.testing.assert_array_equal(frames.state[0].numpy(), solution.state[0].astype(np.float32))
    assert solution.context is not None
    np.testing.assert_array_equal(frames.context[0, 1].numpy(), solution.context[0, 0].astype(np.float32))
    assert data.parameters["lift_coefficient"][2] == drawn["lift_coefficient"]
    assert data.parameters["wall_points"][2] == 16


def test_tasks_change_counts_angles_and_folders() -> None:
    assert dict(build_plan("kt-foil", "small").counts) == {"train": 256, "valid": 32, "test": 128}
    assert build_plan("kt-foil", "small", task="scarce").counts["train"] == 64
    assert folder_name(build_problem("kt-foil", "small"), "small") == "kt-foil-small"
    assert folder_name(build_problem("kt-foil", task="aoa", units="physical"), "paper") == "kt-foil-aoa-physical-paper"


def test_the_angles_of_the_test_split_are_the_tasks(tmp_path: Path) -> None:
    plan = Plan(KTFoil(task="aoa", points=16, wall_points=8), {"train": 8, "valid": 1, "test": 8})
    generate(plan, tmp_path / "aoa", jobs=1, origin=ORIGIN)
    inner, outer = (load_dataset(tmp_path / "aoa", split).parameters["angle"] for split in ("train", "test"))
    assert np.all((inner >= -2.5) & (inner <= 12.5))
    assert np.all((outer < -2.5) | (outer > 12.5))


def test_clouds_are_neither_coarsened_nor_joined_with_grids() -> None:
    array = np.zeros((2, 2, 3, 8), np.float32)
    grid = Trajectories.from_array(array, name="same")
    cloud = Trajectories.from_parts(
        grid.parts, name="same", fields=grid.fields, times=grid.times, axes=grid.axes, geometry=POINT_CLOUD
    )
    with pytest.raises(DataError, match="'same' is a point cloud, which cannot be coarsened"):
        cloud.select(resolution=4)
    with pytest.raises(DataError, match="These files cannot be joined: geometry is cartesian"):
        concatenate([grid, cloud])
