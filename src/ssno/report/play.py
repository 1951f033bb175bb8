"""One page on which a trained SS-NO runs live in the browser, beside the solver of its equation.

    make_play(open_run("ks-0.1-64"), Path("play.html"))

The page is a single file: weights, kernels sampled for the run's grid, a few initial states, and the arithmetic as
WebAssembly (engine.c beside this module, built by `BUILD`; the page refuses another file than the one of this package).
The script is in templates/play_engine.js (numbers) and templates/play.js (the page); docs/manual/play.md explains it.

Axes: h channel, d direction, l grid point, s initial state.
"""

import base64
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from ssno.base.atomic_write import check_replaceable, write_whole
from ssno.data.datasets import PRESETS, build_problem
from ssno.data.load import parse_index
from ssno.data.windows import dataset_conventions
from ssno.layers.axial import RESIDUAL_WEIGHTS
from ssno.layers.block import DiscretisedKernels
from ssno.layers.warp import Warp, warp_grid
from ssno.models.operator import count_parameters
from ssno.models.ssno import SSNO
from ssno.native.operations import WarpGrid
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky, KuramotoSivashinskyAttractor
from ssno.pde.problems.problem import Problem
from ssno.pde.problems.torus import FORCE, LI_WAVES, Torus, TorusLi
from ssno.pde.stepping import COURANT
from ssno.report.make import PAGE
from ssno.report.template import render
from ssno.runs.open import RunFolder

ENGINE = Path(__file__).with_name("engine.wasm")
BUILD = (
    *("clang", "--target=wasm32", "-O3", "-msimd128", "-fno-builtin", "-ffp-contract=off", "-nostdlib"),
    *("-Wl,--no-entry", "-Wl,--strip-all", "-o", "engine.wasm", "engine.c"),
)
"""The command that makes engine.wasm, in the folder of engine.c (Debian: apt-get install clang lld)."""
EQUATIONS = {
    "ks": ("ks", "Kuramoto-Sivashinsky", "uₜ + u uₓ + uₓₓ + ν uₓₓₓₓ = 0"),
    "ks-attractor": ("ks", "Kuramoto-Sivashinsky, stationary chaos", "uₜ + u uₓ + uₓₓ + ν uₓₓₓₓ = 0"),
    "burgers": ("burgers", "Burgers", "uₜ + u uₓ = (ν / π) uₓₓ"),
    "torus-li": ("torus", "Navier-Stokes on the torus", "ωₜ + u · ∇ω = ν Δω + f"),
}
"""Datasets whose equation the page can solve: the solver's name in the script, the title, the equation."""
TILE = 64
LARGEST_TRUTH = 128
"""Points per side of the reference solver in two dimensions; more would keep the page waiting."""
SAMPLES, SEED = 3, 2026
NAMES = ("ssno", "ssno-product", "ssno-warp")
"""Models that engine.c computes."""


@dataclass(frozen=True)
class Physics:
    """The equation of a run, and the times of its frames."""

    dataset: str
    problem: KuramotoSivashinsky | Burgers | TorusLi
    grid: tuple[int, ...]
    times: Float[np.ndarray, " t"]

    @property
    def time_step(self) -> float:
        return float(self.times[1] - self.times[0])


def make_play(run: RunFolder, out: Path, *, dataset: str | None = None, viscosity: float | None = None) -> Path:
    """Write the page of a run and return its path; an earlier page is replaced, no other file.

    `dataset` (ks, ks-attractor, burgers, torus-li) and `viscosity` are the run's own; give what its config lacks.
    """
    check_replaceable(out, PAGE, option="--out")
    page = describe_page(run, dataset=dataset, viscosity=viscosity)
    html = render("play.html", command="ssno play", heading=page["title"], page=page)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, html.encode())
    return out


def describe_page(run: RunFolder, *, dataset: str | None = None, viscosity: float | None = None) -> dict[str, Any]:
    """Everything the page needs, as JSON values."""
    model = supported_model(run)
    physics = find_physics(run, dataset, viscosity)
    forecaster, problem = run.forecaster, physics.problem
    units, wasm = forecaster.normalisers.state, ENGINE.read_bytes()
    sizes, weights = model_weights(model, physics.grid)
    samples, origin = initial_states(run, physics)
    plan = forecaster.window.plan(len(physics.times))
    equation, title, formula = EQUATIONS[physics.dataset]
    envelope = forecaster.envelope
    low, high = (samples.min(), samples.max()) if envelope is None else (envelope.low[0], envelope.high[0])
    reported = run.config.get("reported", run.config.get("stated"))
    return {
        "name": run.name,
        "title": title,
        "equation": equation,
        "formula": formula,
        "field": units.fields[0],
        "grid": list(physics.grid),
        "length": problem.axes[0].length,
        "dt": round(physics.time_step, 12),
        "first_time": float(physics.times[0]),
        "input_frames": max(1, len(plan.input_frames)),
        "trained_frames": len(physics.times),
        "viscosity": problem.viscosity,
        "truth": truth_options(physics),
        "force": [[*wave, FORCE, FORCE] for wave in LI_WAVES.tolist()] if equation == "torus" else [],
        "units": {
            "shift": units.shift[0],
            "scale": units.scale[0],
            "increment": float(forecaster.increment_scale[0]) if forecaster.predict_increment else None,
            "conserve_mean": forecaster.conserve_mean,
        },
        "range": [float(low), float(high)],
        "reported": reported.get("rel_l2") if isinstance(reported, dict) else None,
        "model": sizes,
        "weights": _text(weights),
        "samples": [_text(sample) for sample in samples],
        "samples_from": origin,
        "wasm": base64.b64encode(wasm).decode(),
        "wasm_sha256": hashlib.sha256(wasm).hexdigest(),
    }


def supported_model(run: RunFolder) -> SSNO:
    """The model of a run, if the page can compute it; else the error says what the page supports."""

    def refuse(what: str) -> ValueError:
        return ValueError(
            f"{run.name!r} {what}. `ssno play` supports the models ssno, ssno-product and ssno-warp with one field and "
            "periodic axes, in one or two dimensions, such as the bundled ks-0.1-64, burgers-64 and torus-li-64."
        )

    model, forecaster = run.forecaster.model, run.forecaster
    if not isinstance(model, SSNO):
        raise refuse(f"is a {run.model}")
    config = model.config
    if config.name not in NAMES or config.conditioning != "planes" or config.frames_as_channels:
        detail = "film conditioning" if config.conditioning != "planes" else "frames as channels"
        raise refuse(f"is an {config.name}" if config.name not in NAMES else f"has {detail}")
    if config.n_dims > 2:
        raise refuse(f"has {config.n_dims} dimensions")
    if config.in_channels != 1 or config.out_channels != 1:
        raise refuse(f"has {config.in_channels} input and {config.out_channels} output fields")
    if set(config.boundaries()) - {"periodic", "periodic-truncated"}:
        raise refuse(f"has the boundary {config.boundary!r}")
    if forecaster.normalisers.state.method == "per_sample_minmax" or forecaster.mask is not None:
        raise refuse("has a normalisation per trajectory, or a mask")
    if config.head_channels % 2:
        raise refuse(f"has an odd number of head channels, {config.head_channels}")
    return model


def find_physics(run: RunFolder, dataset: str | None, viscosity: float | None) -> Physics:
    """The problem on whose data a run was trained."""
    recorded = run.config.get("data")
    trained_on = recorded.get("train") if isinstance(recorded, dict) else None
    name = dataset or run.dataset or (trained_on.get("name") if isinstance(trained_on, dict) else None)
    if name not in EQUATIONS:
        known = ", ".join(EQUATIONS)
        raise ValueError(
            f"{run.name!r} was trained on {name or 'data without a name'}, whose equation the page cannot solve. "
            f"Supported datasets: {known}. If it is one of these, pass --dataset."
        )
    options = run.data
    viscosity = viscosity if viscosity is not None else getattr(options, "viscosity", None)
    if viscosity is None and name == "ks":
        raise ValueError(f"{run.name!r} does not record the viscosity of its data. Pass --viscosity, such as 0.1.")
    preset = options.preset if options is not None and options.preset in PRESETS else "paper"
    problem = build_problem(name, preset, **({} if viscosity is None else {"viscosity": viscosity}))
    assert isinstance(problem, KuramotoSivashinsky | Burgers | TorusLi)
    index = parse_index(options.time_index) if options is not None and options.time_index else None
    times = problem.times[index or dataset_conventions(name).frames_of(len(problem.times))]
    times = times[: options.segment] if options is not None and options.segment else times
    spacing = run.forecaster.spacing
    grid = run.grid
    if grid is None and spacing is not None:
        grid = tuple(round(axis.length / step) for axis, step in zip(problem.axes, spacing, strict=True))
    if grid is None or len(grid) != len(problem.axes):
        raise ValueError(f"{run.name!r} does not record a grid that fits the dataset {name!r}. Pass another --dataset.")
    if any(points & (points - 1) or points < 16 for points in grid) or len(set(grid)) > 1 or np.prod(grid) % TILE:
        raise ValueError(f"{run.name!r} has a grid of {grid} points; the page needs a power of two, 64 or more in 1D.")
    return Physics(name, problem, grid, times)


def truth_options(physics: Physics) -> dict[str, int | float]:
    """The solver that made the training data: points per axis and time steps."""
    problem = physics.problem
    if isinstance(problem, KuramotoSivashinsky):
        return {"points": problem.solver_points, "steps": round(physics.time_step / problem.step)}
    if isinstance(problem, Burgers):
        return {"points": problem.cells, "cfl": problem.cfl}
    return {"points": min(LARGEST_TRUTH, problem.solver_points), "step": problem.step, "courant": COURANT}


def model_weights(model: SSNO, grid: tuple[int, ...]) -> tuple[dict[str, Any], Float[np.ndarray, " n"]]:
    """Sizes of a model, and its weights in the order in which the script reads them, kernels sampled on the grid."""
    config, parts = model.config, []
    with torch.no_grad():
        weights = model.eval().grid_weights(grid)
        parts += [model.lift.weight, model.lift.bias]
        for block, scans in zip(model.spatial_blocks(), weights.blocks, strict=True):
            for scan in scans:
                parts += [_taps(scan), scan.mix, scan.bias]
            parts += _warp_weights(block, warp_grid(grid, scans))
        if weights.memory is not None:
            parts += [_taps(weights.memory), weights.memory.mix, weights.memory.bias]
        parts += [model.head.widen.weight, model.head.widen.bias, model.head.narrow.weight, model.head.narrow.bias]
        flat = torch.cat([part.flatten().float() for part in parts]).cpu().numpy()
    sizes = {
        "name": config.name,
        "h": config.hidden_channels,
        "inputs": config.lifted_channels(),
        "coordinates": list(config.coordinate_axes()),
        "before": len(model.blocks_before),
        "after": len(model.blocks_after),
        "window": 0 if model.memory is None else model.memory.window,
        "head": config.head_channels,
        "product": int(config.block.kind == "product"),
        "heads": config.block.warp_heads,
        "residual": RESIDUAL_WEIGHTS[config.block.residual],
        "parameters": count_parameters(model),
    }
    return sizes, flat


def _warp_weights(block: nn.Module, grid: WarpGrid) -> list[torch.Tensor]:
    """The maps of a block's warp, with displacements in points of this grid; none of a block without."""
    warp = getattr(block, "warp", None)
    if not isinstance(warp, Warp):
        return []
    points = torch.tensor(grid.cells).repeat(warp.heads)
    moves = warp.displacements
    displacements = [moves.weight * points[:, None], moves.bias * points]
    return [warp.values.weight, *displacements, warp.out.weight, warp.out.bias]


def _taps(scan: DiscretisedKernels) -> torch.Tensor:
    assert scan.taps is not None, "the grid is too long for kernels"
    assert scan.sampling.copies == 1, "the grid of training"
    return scan.taps


def initial_states(run: RunFolder, physics: Physics) -> tuple[Float[np.ndarray, "s *grid"], str]:
    """First frames of a few test trajectories if the data are here, else of trajectories that our solver makes."""
    try:
        data = run.load("test")
        if data.shape[3:] == physics.grid and len(data) >= SAMPLES:
            return data.read(range(SAMPLES)).state[:, 0, 0].numpy(), f"test data {data.name}"
    except (OSError, ValueError):
        pass  # bundled checkpoints come without their data
    problem = replace(physics.problem, **_shortened(physics.problem))  # type: ignore[arg-type]
    rng = np.random.Generator(np.random.Philox(SEED))
    state = problem.solve([problem.draw(rng) for _ in range(SAMPLES)]).state[:, 0, 0]
    every = state.shape[1] // physics.grid[0]
    thinned = state[(slice(None), *(slice(None, None, every),) * (state.ndim - 1))]
    return thinned, f"our solver, seed {SEED}"


def _shortened(problem: Problem) -> dict[str, int | float]:
    """Options for a single frame, or two where a solver needs them."""
    if isinstance(problem, KuramotoSivashinskyAttractor):
        return {"frames": 2, "end_time": problem.warm_up + problem.frame_interval}
    return {"frames": 1 if isinstance(problem, Torus) else 2}


def _text(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode()
