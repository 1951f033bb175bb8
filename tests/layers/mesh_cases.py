"""One of two or four processes that share fields: every case on pieces, beside the same on whole fields right here.

`test_space` takes part itself as the first process and starts the others: `python mesh_cases.py SIZE CASES FOLDER`,
numbered by the launcher's environment variables.
"""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import ssno
from ssno.data.trajectories import Trajectories
from ssno.forecasting.metrics import frame_errors
from ssno.layers.axial import BlockOptions
from ssno.layers.modes import ModeOptions
from ssno.layers.space import MeshShape, SpaceMesh
from ssno.models.operator import count_parameters
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.options import TrainOptions, Unrolling
from ssno.training.objective import whole
from ssno.training.processes import Process

LINES = ("zero", "periodic", "periodic-truncated", "neumann", "dirichlet", "learned")
FAST: dict[str, Any] = {"initialisation": "grid", "dt_min": 0.03, "dt_max": 1.0}
WAYS = ("carried", "turned")
Case = tuple[str, tuple[int, ...], tuple[int, ...], str, dict[str, Any]]


def few_cases(size: int) -> Iterator[Case]:
    """Name, pieces, grid, way of scanning, and fields of the model."""
    yield "1d film", (size,), (12,), "carried", {"conditioning": "film", "boundary": "learned"}
    yield "2d", (1, size), (6, 8), "carried", {"boundary": ("zero", "periodic")}
    yield "2d", (size, 1), (8, 6), "turned", {"boundary": ("periodic", "neumann")}
    yield "3d", (1, size, 1), (3, 8, 4), "carried", {"boundary": ("periodic", "dirichlet", "zero")}


def all_cases(size: int) -> Iterator[Case]:
    one, two = (size,), ((size, 1), (1, size)) if size == 2 else ((2, 2), (1, 4))
    yield from few_cases(size)
    for boundary, way in product(LINES, WAYS):
        yield boundary, one, (24,), way, {"boundary": boundary}
    for kind, way in product(("unidirectional", "parallel", "product"), WAYS):
        yield kind, one, (24,), way, {"block": BlockOptions(kind), "boundary": "periodic"}
    yield "bilinear", one, (24,), "carried", {"modes": ModeOptions(discretisation="bilinear", **FAST)}
    yield "exact", one, (24,), "turned", {"modes": ModeOptions(discretisation="exact"), "boundary": "periodic"}
    yield "selective", one, (8,), "turned", {"modes": ModeOptions(selective=True)}
    for parts, way in product(two, WAYS):
        yield "2d", parts, (8, 12), way, {"boundary": ("periodic", "neumann")}
    for way in WAYS:
        parts = (2, 1, 2) if size == 4 else (1, 2, 1)
        yield "3d", parts, (4, 6, 8), way, {"boundary": ("periodic", "zero", "dirichlet")}


def difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return ((found - wanted).norm() / wanted.norm().clamp_min(1e-12)).item()


@contextmanager
def shared(model: SSNO, grid: tuple[int, ...], shape: MeshShape) -> Iterator[SpaceMesh]:
    """A mesh whose groups end with it: each has threads that poll, and those of 60 meshes leave no time for work."""
    space = SpaceMesh(model.axis_scans(grid), shape=shape, device=torch.device("cpu"))
    yield space
    dist.barrier()
    for group in space.mesh.get_all_groups():
        if group is not dist.group.WORLD:
            dist.destroy_process_group(group)


def compared(case: Case, dtype: torch.dtype) -> dict[str, float]:
    """The relative differences of one case: forecasts, losses, gradient, its worst parameter, and rounding alone."""
    _, parts, grid, way, fields = case
    torch.manual_seed(0)
    fields = {"modes": ModeOptions(**FAST)} | fields
    model = SSNO(SSNOConfig.tiny(in_channels=2, out_channels=1, n_dims=len(grid), **fields)).to(dtype)
    for name, parameter in model.named_parameters():
        if "beyond" in name or "film.last" in name:  # those start at zero
            torch.nn.init.normal_(parameter, std=0.1)
    frames, truth = torch.randn(2, 5, 2, *grid, dtype=dtype), torch.randn(2, 5, 1, *grid, dtype=dtype)
    whole = model(frames)
    losses = frame_errors(whole, truth)
    losses.mean().backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    exact = deepcopy(model).double()
    frame_errors(exact(frames.double()), truth.double()).mean().backward()
    with shared(model, grid, MeshShape(1, parts)) as space, space.inside(model):
        space.methods = tuple("whole" if n == 1 else way for n in parts)
        pieces = model(space.cut(frames))
        found = frame_errors(pieces, space.cut(truth), over_pieces=space.norm)
        found.mean().backward()
        gathered = space.gathered(pieces.detach())
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert gradients.keys() == wanted.keys()
    for gradient in gradients.values():
        dist.all_reduce(gradient)
    every = [torch.cat([g[name].flatten() for name in wanted]) for g in (gradients, wanted)]
    return {
        "forward": difference(gathered, whole.detach()),
        "loss": difference(found.detach(), losses.detach()),
        "gradient": difference(*every),
        "worst": max(difference(gradients[name], wanted[name]) for name in wanted),
        "rounding": max(difference(wanted[n], p.grad) for n, p in exact.named_parameters() if p.grad is not None),
    }


def compared_shards(case: Case, dtype: torch.dtype) -> dict[str, float]:
    """The same for weights in shards, pieces of fields and blocks that are computed again, all at once."""
    _, parts, grid, _, fields = case
    pieces = math.prod(parts)
    torch.manual_seed(0)
    model = SSNO(SSNOConfig.tiny(n_dims=len(grid), modes=ModeOptions(**FAST), **fields)).to(dtype)
    frames, truth = (torch.randn(2 * dist.get_world_size(), 5, 1, *grid, dtype=dtype) for _ in range(2))
    exact = deepcopy(model).double()
    for one in (model, exact):
        kind = one.lift.weight.dtype
        frame_errors(one(frames.to(kind)), truth.to(kind)).mean(1).mean().backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    process, over = Process(rank=dist.get_rank(), world_size=dist.get_world_size()), None
    with ExitStack() as held:
        if pieces > 1:
            shape = MeshShape(process.world_size // pieces, parts)
            process = replace(process, space=held.enter_context(shared(model, grid, shape)))
        process.shard(model)
        model.space, model.gradient_checkpointing = process.space, True
        mine, true = (field.chunk(process.data_size)[process.data_rank] for field in (frames, truth))
        if process.space is not None:
            mine, true, over = process.space.cut(mine), process.space.cut(true), process.space.norm
        losses = frame_errors(model(mine), true, over_pieces=over).mean(1)
        (losses.sum() * process.world_size / len(frames)).backward()
        gradients = {name: whole(p.grad) for name, p in model.named_parameters() if p.grad is not None}
    assert gradients.keys() == wanted.keys()
    return {
        "gradient": difference(*[torch.cat([g[name].flatten() for name in wanted]) for g in (gradients, wanted)]),
        "worst": max(difference(gradients[name], wanted[name]) for name in wanted),
        "rounding": max(difference(wanted[n], p.grad) for n, p in exact.named_parameters() if p.grad is not None),
        "share": sum(p.to_local().numel() for p in model.parameters()) / count_parameters(model),
    }


def shard_cases(size: int, *, few: bool) -> Iterator[Case]:
    yield "2d", (2, 1), (8, 6), "", {"boundary": ("periodic", "zero")}
    if few:
        return
    yield "1d", (1,), (12,), "", {}
    yield "3d", (1, size, 1), (3, 8, 4), "", {"boundary": "periodic"}
    for kind in ("unidirectional", "parallel", "product", "raster"):
        yield kind, (1, 1), (8, 6), "", {"block": BlockOptions(kind)}


def trained(folder: Path, mesh: str | None, **more: Any) -> None:
    """A training with all that a loss may contain: context, a mask, noise, unrolling, clipping, an average."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(4, 6, 2, 8, 6, generator=generator).cumsum(1)
    values[:, :, 1] = (torch.rand(4, 1, 8, 6, generator=generator) < 0.2).float()
    data = Trajectories.from_array(values, fields=("u", "solid"), context_fields=("solid",)).masked("solid")
    torch.manual_seed(0)
    model = SSNO(SSNOConfig.tiny(in_channels=2, out_channels=1, n_dims=2, boundary=("periodic", "zero")))
    unroll = Unrolling(teacher_forcing=(1.0, 0.5), truncate=2, gradient_checkpointing=True)
    # SOAP's eigenbases would enlarge the differences in the last bits.
    steps: dict[str, Any] = {"optimizer": "adamw", "learning_rate": 3e-3, "grad_clip": 0.1, "ema": 0.5}
    options = TrainOptions(epochs=2, batch_size=2, noise_std=0.01, unroll=unroll, **steps)
    ssno.train(model, data, options=options, folder=folder, mesh=mesh, **more)


def take_part(size: int, chosen: str, folder: Path) -> list[tuple[Case, torch.dtype, dict[str, float]]]:
    """Everything that processes do together, each group of them at a port of its own: stores outlive their groups."""
    ports = iter(os.environ["PORTS"].split())
    os.environ["MASTER_PORT"] = next(ports)
    dist.init_process_group("gloo")
    few = chosen == "few"
    dtypes = (torch.float32,) if few else (torch.float32, torch.float64)
    cases = few_cases(size) if few else all_cases(size)
    found = [(case, dtype, compared(case, dtype)) for case in cases for dtype in dtypes]
    sharded = shard_cases(size, few=few)
    found += [(case, dtype, compared_shards(case, dtype)) for case in sharded for dtype in dtypes]
    dist.destroy_process_group()
    if few:
        for name, more in (("two", {}), ("sharded", {"fsdp": True, "gradient_checkpointing": True})):
            os.environ["MASTER_PORT"] = next(ports)
            trained(folder / name, f"space={size}", **more)
    return found


if __name__ == "__main__":
    take_part(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
