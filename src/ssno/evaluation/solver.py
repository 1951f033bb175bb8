"""The numerical solver as a baseline for a model.

    solver, same grid   the data's own solver on the model's grid, with the time step of the data
    solver, same time   the finest grid (the time step grows with the spacing) on which the solver takes no longer per
                        trajectory than the model, both measured here
    break-even          after how many forecasts training, data and model have cost less than the solver of equal error

A dataset of ours stores the parameters of every trajectory, so any of them can be solved again on any grid. The solver
starts from the exact initial condition of the trajectory, not from the input frames of a model; its time until the last
input frame counts. Datasets whose solution is a formula (heat, advection-diffusion) are refused.

Axes: n trajectory, t frame, c field, then the grid.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.base import description_from_json
from ssno.base.provenance import processor_name
from ssno.base.renamed import with_new_names
from ssno.data.datasets import DATASETS
from ssno.data.load import DataOptions, find
from ssno.data.manifest import DESCRIPTION, MANIFEST, read_manifest
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import Window
from ssno.evaluation.cost import quick_seconds
from ssno.evaluation.record import BreakEven
from ssno.forecasting.scores import Scores, score_forecasts
from ssno.pde.geometry import Axis
from ssno.pde.problems.heat import LinearProblem
from ssno.pde.problems.problem import Parameters, Problem, SolverDiverged
from ssno.runs.load import run_folder_of
from ssno.runs.log import read_log
from ssno.runs.open import RunFolder
from ssno.transforms.periodic import resample

# How fields of a solver get to the grid of the data; `stride` and `linear` leave values at shared points unchanged:
#
#     spectral   truncated to the wavenumbers of the new grid (`ssno.transforms.periodic`), as spectrally reduced data
#     stride     trigonometric interpolation without truncation, as strided data
#     linear     between neighbouring points, for fields with shocks

Interpolation = Literal["spectral", "stride", "linear"]
SAME_GRID, SAME_TIME = "solver, same grid", "solver, same time"
FEWEST_POINTS = 16
LONGER_STEPS = (8.0, 4.0, 2.0)
TIMED = 8  # trajectories solved together when a solver is timed, as many as when a model is
LONG = 2.0  # seconds of one trajectory after which no more are solved to time a solver
INNER_GRIDS = ("solver_points", "cells", "spectral_points")
SHOCKS = ("fv", "hllc-muscl")  # solvers whose fields may have shocks


def interpolate(
    field: Float[np.ndarray, "..."], old: Sequence[Axis], new: Sequence[Axis], how: Interpolation
) -> Float[np.ndarray, "..."]:
    """The field on the points of other axes of the same domain; any leading axes."""
    for dim, (before, after) in zip(range(-len(old), 0), zip(old, new, strict=True), strict=True):
        if not before.periodic or before.length != after.length:
            raise ValueError(
                f"Axis {before.name!r} must be periodic and keep its length, got {before.length} and {after.length}."
            )
        if (before.points, before.offset) != (after.points, after.offset):
            field = np.moveaxis(_along(np.moveaxis(field, dim, -1), before, after, how), -1, dim)
    return field


def _along(lines: Float[np.ndarray, "... l"], old: Axis, new: Axis, how: Interpolation) -> Float[np.ndarray, "... m"]:
    if how == "linear":
        return lines @ straight_lines(old, new).T
    fine = (
        1 if how == "spectral" else -(-old.points // new.points)
    )  # a multiple of the new grid resolves all old wavenumbers
    shift = (new.offset - old.offset) / old.length
    found = resample(torch.from_numpy(lines.astype(np.float64)), (fine * new.points,), shift=(shift,))
    return found[..., ::fine].numpy()


def straight_lines(old: Axis, new: Axis) -> Float[np.ndarray, "m l"]:
    """The matrix that takes values at the points of `old` to those at the points of `new`."""
    distance = (new.coordinates()[:, None] - old.coordinates()[None]) / old.spacing  # in spacings
    wrapped = np.abs((distance + old.points / 2) % old.points - old.points / 2)
    return np.clip(1 - wrapped, 0, None)


@dataclass(frozen=True)
class Candidate:
    """The problem on another grid, with a time step `longer` times that of the data."""

    problem: Problem
    points: int
    longer: float = 1.0


def solver_baselines(
    options: DataOptions, data: Trajectories, window: Window, *, seconds: float, batch_size: int = 32
) -> dict[str, Scores]:
    """Scores of both solver baselines, by name; `seconds` is the time of the model per trajectory.

    The second is missing if the solver is slower than the model on every grid. The means of its scores include what was
    chosen: `points`, `step_factor` and `seconds`.
    """
    problem = problem_of(options)
    check_same(problem, data)
    own = Candidate(on_grid(problem, data.axes[0].points), data.axes[0].points)
    found = {SAME_GRID: _scored(own, data, window, batch_size)}
    fast = fastest_fitting(problem, data, seconds=seconds)
    if fast is not None:
        found[SAME_TIME] = _scored(fast, data, window, batch_size)
    return found


def break_even(
    run: RunFolder, options: DataOptions, data: Trajectories, window: Window, *, scores: Scores, seconds: float
) -> BreakEven:
    """Break-even of a run whose forecasts of `data`, described by `options`, have these scores and take `seconds`.

    Everything is wall-clock time: training from the run's log, the rest measured here. The error is that of the first
    trajectories, up to eight, for model and solver.
    """
    training, remarks = training_seconds(run)
    making: float | None = None
    try:
        making, remark = data_seconds(run.data)
        remarks.append(remark)
    except (ValueError, FileNotFoundError) as problem:
        remarks.append(f"Data: {str(problem).rstrip('.')}")
    few = data.select(indices=range(min(TIMED, len(data))))
    error = float(np.mean(scores.trajectory_errors[: len(few)]))
    equal = equal_error(problem_of(options), few, window, error=error) if math.isfinite(error) else None
    if equal is None:
        remarks.append("Solver: no grid has the error of the model" if math.isfinite(error) else "Model: diverged")
    points, solving = equal or (None, None)
    return BreakEven(
        training=training, data=making, model=seconds, solver=solving, solver_points=points, remarks=tuple(remarks)
    )


def training_seconds(run: RunFolder) -> tuple[float | None, list[str]]:
    """Seconds of training from the log of a run, and what to know about them."""
    lines = read_log(run_folder_of(run.folder))
    epochs = [line["seconds"] for line in lines if isinstance(line.get("seconds"), int | float)]
    if not epochs:
        return None, ["Training: the run has no log of its time"]
    remarks = []
    section, provenance = (run.config.get(name) for name in ("run", "provenance"))
    if isinstance(section, dict) and section.get("start_from"):
        remarks.append("Training: without that of the checkpoint it started from")
    there = provenance.get("processor") if isinstance(provenance, dict) else None
    if there != processor_name():
        remarks.append(f"Training: on another processor ({there or 'not recorded'})")
    return epochs[-1], remarks


def data_seconds(options: DataOptions | None) -> tuple[float, str]:
    """Seconds to solve the trajectories that a run was trained and validated on, and how they were found.

    Manifests have no times, so some trajectories are solved again. Pieces of one trajectory count once.
    """
    if options is None:
        raise ValueError("the run was started from Python without the options of its data")
    problem, used = problem_of(options), options.load_splits("train", "valid")
    count = sum(len(np.unique(one.rows[:, :2], axis=0)) for one in used)
    begun = time.perf_counter()
    problem.solve(parameters_of(used[0], [0]))
    each = time.perf_counter() - begun
    if each < LONG:
        each = measured(problem, parameters_of(used[0], range(min(TIMED, len(used[0])))))
    return count * each, f"Data: {count:,} trajectories of {each:.2g} s, measured here"


def equal_error(problem: Problem, data: Trajectories, window: Window, *, error: float) -> tuple[int, float] | None:
    """Points and seconds per trajectory of the cheapest solver with at most this `rel_l2`; None if there is none."""
    for candidate in candidates(problem, data.axes[0].points):
        found = score_forecasts(_predictor(candidate, data, window), data, window, batch_size=len(data))
        if found.means["rel_l2"] <= error:
            return candidate.points, measured(candidate.problem, parameters_of(data, range(len(data))))
    return None


def problem_of(options: DataOptions) -> Problem:
    """The problem that made a dataset, from the description in its manifest."""
    folder = find(options.path or options.name, root=Path("data"), preset=options.preset, viscosity=options.viscosity)
    if not (folder / MANIFEST).is_file():
        raise ValueError(
            f"`solver`: {folder} was not generated by ssno, so there is no solver for it. Leave `solver` out."
        )
    description = read_manifest(folder)[DESCRIPTION]
    name = description.get("dataset")
    if name not in DATASETS or "options" not in description:
        raise ValueError(
            f"`solver`: {folder} was converted, not generated, so there is no solver for it. Leave `solver` out."
        )
    kind: Any = DATASETS[name].problem
    if issubclass(kind, LinearProblem):
        raise ValueError(f"`solver`: {name!r} has an exact solution, so there is no solver to compare with.")
    return description_from_json(kind, with_new_names(description["options"], "options."), where="options.")


def check_same(problem: Problem, data: Trajectories) -> None:
    """Refuse trajectories whose fields, frames or parameters are not those of the problem."""
    last = int(data.rows[:, 2].max() + data.frame_index.max())
    stored = problem.times
    if data.fields != problem.fields or last >= len(stored) or not _same_times(stored, data):
        raise ValueError(f"The trajectories of {data.name!r} are not those that {type(problem).__name__} makes.")


def on_grid(problem: Problem, points: int, *, longer: float = 1.0) -> Problem:
    """The same problem, solved and stored on `points` points per side, with a time step `longer` times as long."""
    changes: dict[str, Any] = {"points": points}
    names = {option.name for option in dataclasses.fields(problem)}  # type: ignore[arg-type]
    for name in INNER_GRIDS:
        if name in names:
            # Burgers' spectral solver puts its nodes where cell centres are; keep those if the grid has them.
            keeps = name == "cells" and problem.solver == "exact" and problem.cells % points == 0  # type: ignore[attr-defined]
            changes |= {} if keeps else {name: points}
    if "step" in names:
        changes["step"] = problem.step * longer  # type: ignore[attr-defined]
    return replace(problem, **changes)  # type: ignore[type-var]


def fastest_fitting(problem: Problem, data: Trajectories, *, seconds: float) -> Candidate | None:
    """The finest candidate that takes at most `seconds` per trajectory, measured from the coarsest on."""
    best = None
    for candidate in candidates(problem, data.axes[0].points):
        taken = measured(candidate.problem, parameters_of(data, range(min(TIMED, len(data)))))
        if seconds < taken < math.inf:
            break
        if taken <= seconds:  # too long a step may diverge where the next does not
            best = candidate
    return best


def candidates(problem: Problem, points: int) -> Iterator[Candidate]:
    """From the cheapest to the data's own grid: the model's grid times powers of two, time steps proportional to dx.

    On the coarsest grid also longer steps. Finite volumes choose their own steps, proportional to dx as well.
    """
    inner = solver_points(problem)
    coarse = points
    while coarse % 2 == 0 and coarse // 2 >= FEWEST_POINTS and _possible(problem, coarse // 2):
        coarse //= 2
    own_steps = hasattr(problem, "step") and problem.solver not in SHOCKS
    for factor in LONGER_STEPS if own_steps else ():
        longer = factor * inner / coarse
        yield Candidate(on_grid(problem, coarse, longer=longer), coarse, longer)
    while coarse <= inner:
        longer = inner / coarse if own_steps else 1.0
        yield Candidate(on_grid(problem, coarse, longer=longer), coarse, longer)
        coarse *= 2


def solver_points(problem: Problem) -> int:
    """Points per side of the grid that the data were solved on."""
    name = "spectral_points" if problem.solver == "exact" else None
    return int(next(getattr(problem, known) for known in ([name] if name else INNER_GRIDS) if hasattr(problem, known)))


def measured(problem: Problem, parameters: Sequence[Parameters]) -> float:
    """Seconds per trajectory, when these are solved together; infinite for a solver that diverges."""
    try:
        return quick_seconds(lambda: problem.solve(parameters), rounds=1) / len(parameters)
    except SolverDiverged:
        return math.inf


def parameters_of(data: Trajectories, chosen: Sequence[int]) -> list[dict[str, np.ndarray]]:
    """The parameters of some trajectories, one mapping each."""
    return [{name: np.asarray(values[n]) for name, values in data.parameters.items()} for n in chosen]


def solve_on(problem: Problem, data: Trajectories, chosen: Sequence[int]) -> Float[Tensor, "n t c *grid"]:
    """Some trajectories as the problem solves them, on the grid and at the times of `data`; NaN where it fails."""
    parameters = parameters_of(data, chosen)
    try:
        states = problem.solve(parameters).state
    except SolverDiverged:
        states = np.concatenate([_alone(problem, one) for one in parameters])
    frames = np.stack(
        [states[i, int(data.rows[n, 2]) + data.frame_index] for i, n in enumerate(chosen)]
    )  # rows of one file may start at different frames
    return torch.from_numpy(interpolate(frames, problem.axes, data.axes, as_read(problem, data))).float()


def as_read(problem: Problem, data: Trajectories) -> Interpolation:
    """How the data were brought to their grid; otherwise an exact solver would have errors."""
    if problem.solver in SHOCKS:
        return "linear"
    return "spectral" if any(reduction.how == "spectral" for reduction in data.reductions) else "stride"


def _alone(problem: Problem, parameters: Parameters) -> np.ndarray:
    try:
        return problem.solve([parameters]).state
    except SolverDiverged:
        grid = [axis.points for axis in problem.axes]
        return np.full((1, len(problem.times), len(problem.fields), *grid), np.nan)


def _predictor(candidate: Candidate, data: Trajectories, window: Window) -> Callable[[Frames, range], Tensor]:
    plan = window.plan(len(data.times))
    return lambda _, chosen: solve_on(candidate.problem, data, chosen)[:, plan.predicted.start : plan.predicted.stop]


def _scored(candidate: Candidate, data: Trajectories, window: Window, batch_size: int) -> Scores:
    scores = score_forecasts(_predictor(candidate, data, window), data, window, batch_size=batch_size)
    seconds = measured(candidate.problem, parameters_of(data, range(min(TIMED, len(data)))))
    how = {"points": float(candidate.points), "step_factor": candidate.longer, "seconds": seconds}
    return replace(scores, means={**scores.means, **how})


def _possible(problem: Problem, points: int) -> bool:
    try:
        on_grid(problem, points)
    except ValueError:
        return False
    return True


def _same_times(stored: np.ndarray, data: Trajectories) -> bool:
    first = int(data.rows[0, 2])
    begun = stored[first + data.frame_index] - stored[first + data.frame_index[0]]
    return bool(np.allclose(begun, data.times - data.times[0], rtol=1e-5, atol=1e-6 * abs(float(stored[-1]))))
