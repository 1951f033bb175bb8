"""Against the public package torch-harmonics: transforms, and a frame of its shallow-water solver."""

import subprocess
import sys
import tarfile

import numpy as np
import pytest
import torch

from ssno.pde.problems.shallow_water import ShallowWater
from ssno.pde.sphere import ShallowWaterEquations
from ssno.transforms import SphereGrid, SphereTransform

VERSION = "0.7.4"
SCRIPT = """
import sys
import numpy as np, torch
import torch_harmonics as public
from torch_harmonics.examples import ShallowWaterSolver

given = np.load(sys.argv[1])
field = torch.from_numpy(given["field"])
found = {}
for grid in ("equiangular", "legendre-gauss"):
    options = {"lmax": 11, "mmax": 11, "grid": grid, "csphase": False}
    modes = public.RealSHT(*field.shape[-2:], **options).double()(field)
    found[grid] = modes.numpy()
    found[f"{grid} back"] = public.InverseRealSHT(*field.shape[-2:], **options).double()(modes).numpy()
solver = ShallowWaterSolver(32, 64, 1200.0, lmax=11, mmax=11, grid="equiangular").double()
found["frame"] = solver.timestep(torch.from_numpy(given["state"]), 3).numpy()
np.savez(sys.argv[2], **found)
"""


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What torch-harmonics, unpacked beside the tests and not installed, makes of a field and of a state."""
    folder = tmp_path_factory.mktemp("public")
    command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, *command, f"torch-harmonics=={VERSION}", "-d", str(folder)], check=True, timeout=600
    )
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    torch.manual_seed(0)
    np.savez(folder / "given.npz", field=torch.randn(2, 32, 64, dtype=torch.float64).numpy(), state=start().numpy())
    root = next(folder.glob("torch_harmonics-*/"))
    command = [sys.executable, "-c", SCRIPT, str(folder / "given.npz"), str(folder / "found.npz")]
    subprocess.run(command, check=True, timeout=600, env={"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"})
    return {**np.load(folder / "given.npz"), **np.load(folder / "found.npz")}


def start() -> torch.Tensor:
    """The public random state of our solver, (c, l, m) as torch-harmonics has it."""
    problem = ShallowWater(nlat=32, frames=1)
    return torch.from_numpy(problem.coefficients([{"field_seed": np.array(7)}])[0, 0]).permute(2, 1, 0).contiguous()


@pytest.mark.verify
@pytest.mark.parametrize(("ours", "theirs"), [("equiangular", "equiangular"), ("gauss", "legendre-gauss")])
def test_transforms_are_those_of_the_public_package(public, ours, theirs) -> None:
    transform = SphereTransform(SphereGrid(32, 64, ours), degrees=11, dtype=torch.float64)
    modes = transform.analyse(torch.from_numpy(public["field"]))
    assert np.abs(modes.numpy() - public[theirs]).max() < 1e-13
    assert np.abs(transform.synthesise(modes).numpy() - public[f"{theirs} back"]).max() < 1e-13


@pytest.mark.verify
def test_a_frame_is_that_of_the_public_solver(public) -> None:
    """Up to its vector transform, which divides by whole numbers in float32."""
    problem = ShallowWater(nlat=32, frames=2)
    equations = ShallowWaterEquations(problem.degrees)
    state = torch.from_numpy(public["state"]).permute(2, 1, 0)[..., None].contiguous()  # m l c b
    frame = problem.next_frame(equations)(state)[..., 0].permute(2, 1, 0).numpy()
    for field, tolerance in enumerate((1e-7, 1e-6, 5e-6)):
        expected = public["frame"][field]
        assert np.linalg.norm(frame[field] - expected) < tolerance * np.linalg.norm(expected[1:])
