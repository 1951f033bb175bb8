"""One of several processes that share fields: every case on pieces, beside the same on whole fields in this process.

Started by `test_space` as `python mesh_cases.py RANK SIZE FILE`; prints a line of JSON per case with the largest
relative difference of forecasts, losses and gradients.
"""

import json
import sys
from itertools import product

import torch
import torch.distributed as dist

from ssno.forecasting.metrics import frame_errors
from ssno.layers.axial import BlockOptions
from ssno.layers.modes import ModeOptions
from ssno.layers.space import MeshShape, SpaceMesh
from ssno.models.ssno import SSNO, SSNOConfig

LINES = ("zero", "periodic", "periodic-truncated", "neumann", "dirichlet", "learned")
FAST = {"initialisation": "grid", "dt_min": 0.03, "dt_max": 1.0}


def cases(size: int):
    """Name, pieces, grid, way of scanning, and fields of the model."""
    one, two = (size,), ((size, 1), (1, size)) if size == 2 else ((2, 2), (1, 4))
    for boundary, way in product(LINES, ("carried", "turned")):
        yield f"1d {boundary} {way}", one, (24,), way, {"boundary": boundary}
    for kind, way in product(("unidirectional", "parallel", "product"), ("carried", "turned")):
        yield f"1d {kind} {way}", one, (24,), way, {"block": BlockOptions(kind), "boundary": "periodic"}
    yield "1d film", one, (24,), "carried", {"conditioning": "film", "boundary": "zero"}
    yield "1d bilinear", one, (24,), "carried", {"modes": ModeOptions(discretisation="bilinear", **FAST)}
    yield "1d exact", one, (24,), "turned", {"modes": ModeOptions(discretisation="exact"), "boundary": "periodic"}
    yield "1d selective", one, (8,), "turned", {"modes": ModeOptions(selective=True)}
    for parts, way in product(two, ("carried", "turned")):
        yield f"2d {parts} {way}", parts, (8, 12), way, {"boundary": ("periodic", "neumann")}
    parts = (2, 1, 2) if size == 4 else (1, 2, 1)
    for way in ("carried", "turned"):
        yield f"3d {parts} {way}", parts, (4, 6, 8), way, {"boundary": ("periodic", "zero", "dirichlet")}


def difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return ((found - wanted).norm() / wanted.norm().clamp_min(1e-12)).item()


def compared(parts, grid, way, fields, *, dtype: torch.dtype) -> dict[str, float]:
    """The differences of one case."""
    torch.manual_seed(0)
    fields = {"modes": ModeOptions(**FAST)} | fields
    model = SSNO(SSNOConfig.tiny(in_channels=2, out_channels=1, n_dims=len(grid), **fields)).to(dtype)
    for name, parameter in model.named_parameters():
        if "beyond" in name or "film.last" in name:  # those start at zero
            torch.nn.init.normal_(parameter, std=0.1)
    frames = torch.randn(2, 5, 2, *grid, dtype=dtype)
    truth = torch.randn(2, 5, 1, *grid, dtype=dtype)
    whole = model(frames)
    losses = frame_errors(whole, truth)
    losses.mean().backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    space = SpaceMesh(model.axis_scans(grid), shape=MeshShape(1, parts), device=torch.device("cpu"))
    space.methods = tuple("whole" if n == 1 else way for n in parts)
    with space.inside(model):
        pieces = model(space.cut(frames))
        shared = frame_errors(pieces, space.cut(truth), over_pieces=space.norm)
        shared.mean().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert gradients.keys() == wanted.keys()
    for gradient in gradients.values():
        dist.all_reduce(gradient)
    every = [torch.cat([g[name].flatten() for name in wanted]) for g in (gradients, wanted)]
    return {
        "forward": difference(space.gathered(pieces.detach()), whole.detach()),
        "loss": difference(shared.detach(), losses.detach()),
        "gradient": difference(*every),
        "worst": max(difference(gradients[name], wanted[name]) for name in wanted),
    }


def main() -> None:
    rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    for name, parts, grid, way, fields in cases(size):
        for dtype in (torch.float32, torch.float64):
            found = compared(parts, grid, way, fields, dtype=dtype)
            if rank == 0:
                print(json.dumps({"case": name, "dtype": str(dtype), **found}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
