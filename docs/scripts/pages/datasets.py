"""A page for every dataset: equation, picture by the real solver, options, sizes, commands, and what models reach."""

import dataclasses
import inspect
import math
import typing
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from docs.scripts.pages.markdown import (
    GENERATED,
    draw_once,
    over_seeds,
    source_digest,
    table,
    write_page,
)
from docs.scripts.pages.stored import Cell, comparisons, generation_seconds, older_recipe

from ssno.base import byte_size, duration
from ssno.data.datasets import DATASETS, PRESETS, build_plan, build_problem, folder_name, generate_command
from ssno.models.registry import CLOUD_MODELS, SPHERE_MODELS
from ssno.pde import Problem
from ssno.plots import animate, animate_globe, gallery, look, save
from ssno.plots.animation import AnimationOptions
from ssno.plots.fields import vorticity_magnitude
from ssno.plots.style import Figure, Labels, colours, ink

DRAWS = 200
"""Draws whose range is shown; every trajectory of a dataset is one."""
FRAMES = 24
"""Most frames of an animation."""
SHOWN_FIELD = {"gce-rt": "tracer", "gray-scott": "v", "swe": "geopotential", "swe-vortical": "vorticity"}
"""The field that shows most; the first one elsewhere."""
SPIN = "largest |vorticity| along z"
SHOWN_FIELD["box-turbulence"] = SPIN
SEGMENT = 26
THUMBNAIL = 'width=200 style="min-width: 9rem" loading=lazy'


def dataset_page(name: str, folder: Path, *, preset: str = "small") -> Path:
    """Write the page of a dataset and its picture."""
    problem = build_problem(name, preset)  # type: ignore[arg-type]
    picture = dataset_picture(name, problem, folder)
    summary = DATASETS[name].summary
    parts = [
        f"# {name}\n\n{summary}\n",
        GENERATED,
        f"![{alternative_text(name, problem)}]({picture.name})\n",
        f"One trajectory of the preset `{preset}`, solved when this page was made.\n"
        if picture.suffix == ".gif"
        else f"Trajectories of the preset `{preset}`, solved when this page was made.\n",
        f"## Equation\n\n{equation(problem)}\n",
        domain(problem),
        f"## Options\n\n{options(name)}\n",
        f"Drawn anew for every trajectory (range of {DRAWS} draws):\n\n{drawn(problem)}\n",
        f"## Sizes and times\n\n{sizes(name)}\n",
        f"## Commands\n\n{commands(name)}\n",
        f"## What models reach\n\n{reached(name)}\n",
        f"## What to expect\n\n{expectations(problem)}\n",
    ]
    return write_page(folder / f"{name}.md", "\n".join(parts))


def equation(problem: Problem) -> str:
    """The equation, one line of mathematics for each part."""
    assert problem.formula, f"{type(problem).__name__} needs a `formula`"
    return "\n\n".join(f"$$\n{part.strip().rstrip(',')}\n$$" for part in problem.formula.split(r"\qquad"))


def domain(problem: Problem) -> str:
    """Fields, axes, boundaries and times."""
    kind = {"cartesian": "a uniform grid", "sphere": "the sphere", "points": "a cloud of points"}[problem.geometry.name]
    lines = [f"Fields {code(problem.fields)} on {kind}."]
    if problem.context_fields:
        lines.append(f"Context fields (inputs that are not predicted): {code(problem.context_fields)}.")
    rows = [
        (f"`{axis.name}`", "periodic" if axis.periodic else "walls or open", f"{axis.length:.5g}", axis.points)
        for axis in problem.axes
    ]
    times = problem.times
    lines.append(f"{len(times)} frames from t = {times[0]:.4g} to {times[-1]:.4g}. Solver: `{problem.solver}`.")
    if problem.geometry.name == "points":
        return "\n".join(lines) + "\n"
    return "\n".join(lines) + "\n\n" + table(["axis", "boundary", "length", "points"], rows, right=2)


def options(name: str) -> str:
    """Every option of the problem: a flag of `ssno data generate`."""
    kind = DATASETS[name].problem
    types = typing.get_type_hints(kind)
    rows = []
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        choices = typing.get_args(types[field.name])
        named = all(isinstance(choice, str) for choice in choices) and choices
        allowed = ", ".join(map(str, choices)) if named else getattr(types[field.name], "__name__", "numbers")
        in_presets = {preset: DATASETS[name].sizes[preset].options.get(field.name) for preset in PRESETS}
        changed = ", ".join(f"{preset} {value}" for preset, value in in_presets.items() if value is not None)
        rows.append((f"`--{field.name.replace('_', '-')}`", allowed, f"`{field.default}`", changed or "-"))
    return table(["flag", "values", "default", "changed by presets"], rows, right=4)


def drawn(problem: Problem) -> str:
    """What `draw` samples: name, shape and range."""
    rng = np.random.Generator(np.random.Philox(0))
    samples = [problem.draw(rng) for _ in range(DRAWS)]
    rows = []
    for key, first in samples[0].items():
        if key.endswith("seed"):
            rows.append((f"`{key}`", "1", "a seed of the random field"))
            continue
        values = np.stack([np.asarray(sample[key]) for sample in samples])
        rows.append((f"`{key}`", first.size, f"{values.min():.3g} to {values.max():.3g}"))
    return table(["parameter", "numbers", "range"], rows, right=3)


def sizes(name: str) -> str:
    """Trajectories, grid, disk and solver time of every preset."""
    rows = []
    for preset in PRESETS:
        plan = build_plan(name, preset)
        problem, total = plan.problem, sum(plan.counts.values())
        grid = " x ".join(str(axis.points) for axis in problem.axes)
        stored = total * len(problem.times) * len(problem.fields) * math.prod(axis.points for axis in problem.axes) * 4
        each = generation_seconds().get(name, {}).get(preset)
        time = "-" if each is None else f"{each:.2g} s"
        whole = "-" if each is None else duration(each * total)
        counts = "/".join(str(plan.counts.get(split, 0)) for split in ("train", "valid", "test"))
        rows.append((f"`{preset}`", counts, f"{len(problem.times)} x {grid}", byte_size(stored), time, whole))
    headings = ["preset", "train/valid/test", "frames x grid", "float32", "per trajectory", "all, one core"]
    note = (
        "Processor time of the solver on one core of a shared virtual machine (`results/dataset-costs.json`, by "
        "`docs/scripts/dataset_costs.py`; long batches extrapolated). Cores share the work.\n"
    )
    return f"{table(headings, rows)}\n{note}"


def commands(name: str) -> str:
    """How to generate the dataset, look at it and train on it."""
    problem = build_problem(name, "small")
    lines = [
        generate_command(name, "small"),
        f"ssno data inspect data/{folder_name(problem, 'small')}",
        train_command(name),
    ]
    return "```bash\n" + "\n".join(lines) + "\n```"


def train_command(name: str) -> str:
    """The command that trains the model made for the dataset's geometry."""
    problem = build_problem(name, "small")
    model = {"sphere": SPHERE_MODELS[0], "points": CLOUD_MODELS[0]}.get(problem.geometry.name)
    parts = ["ssno", "train", name, "--data.preset", "small"]
    parts += ["--model", model] if model else []
    parts += ["--data.segment", str(SEGMENT)] if problem.stationary else []
    return " ".join(parts)


def metric_of(name: str) -> str:
    """Errors in normalised units where a field has a large mean (the sphere's geopotential), else in physical units."""
    return "rel_l2_normalised" if DATASETS[name].problem.geometry.name == "sphere" else "rel_l2"


def reached(name: str) -> str:
    """Errors of every model, one table for each stored experiment that compares models."""
    metric, parts = metric_of(name), []
    found = comparisons(name)
    for file in dict.fromkeys(file for file, _ in found):
        columns = {case: column for (other, case), column in found.items() if other == file}
        rows: list[tuple[object, ...]] = []
        for case, column in columns.items():
            ordered = sorted(column, key=lambda cell: by_mean(cell, metric))
            rows += [error_row(cell, metric, case) for cell in ordered]
            if persistence := column[0].persistence:
                known = (f"{persistence[key]:.3g}" if key in persistence else "-" for key in (metric, "rel_l2_onestep"))
                rows.append((case, "[persistence](../models/persistence.md)", "", "0", "", *known))
        headings = ["case", "model", "as", "parameters", "training", f"`{metric}`", "one step"]
        scale = next(iter(columns.values()))[0].scale
        parts.append(f"**Scale `{scale}`**, `results/{file}`\n\n{table(headings, rows, right=3)}")
    if not parts:
        return "No stored result compares models on this dataset yet."
    note = (
        "Means ± standard deviation over (number of) seeds, on test trajectories unless the scale says otherwise; "
        "sorted by error within a case. Scale `cpu` is minutes of training per run and `tenth` a tenth of the "
        "published training: they rank models at that budget and are not the best a model can do.\n"
    )
    return f"{note}\n{older_recipe(file for file, _ in found)}\n" + "\n".join(parts)


def error_row(cell: Cell, metric: str, case: str) -> tuple[object, ...]:
    """A model's line in the table of an experiment."""
    return (
        case,
        f"[{cell.model}](../models/{cell.model}.md)",
        cell.label,
        f"{cell.parameters:,}",
        budget(cell),
        over_seeds(cell.summary(metric)),
        over_seeds(cell.summary("rel_l2_onestep")),
    )


def by_mean(cell: Cell, metric: str) -> float:
    """The mean error, for sorting."""
    summary = cell.summary(metric)
    return math.inf if summary is None else summary.mean


def budget(cell: Cell) -> str:
    """How much a cell was trained."""
    parts = [f"{cell.epochs} epochs" if cell.epochs and cell.epochs > 1 else "1 epoch" if cell.epochs else ""]
    parts.append(f"{cell.trajectories:,} traj." if cell.trajectories else "")
    return ", ".join(filter(None, parts)) or "-"


def expectations(problem: Problem) -> str:
    """What the source says about the problem: numbers, initial conditions, accuracy."""
    kind = type(problem)
    module = inspect.getmodule(kind)
    path = f"src/{kind.__module__.replace('.', '/')}.py"
    own = inspect.cleandoc(kind.__doc__ or "")
    whole = inspect.cleandoc(module.__doc__ or "") if module else ""
    return f"{own}\n\nFrom the top of `{path}`:\n\n```text\n{whole}\n```"


def code(names: Sequence[str]) -> str:
    """Names in code style, in a row."""
    return ", ".join(f"`{name}`" for name in names)


def alternative_text(name: str, problem: Problem) -> str:
    """What the picture shows."""
    if problem.geometry.name == "points":
        return f"{name}: pressure coefficient around aerofoils"
    shown = SHOWN_FIELD.get(name, problem.fields[0])
    how = "over space and time" if len(problem.axes) == 1 else "as it moves"
    return f"{name}: {shown} {how}"


def dataset_picture(name: str, problem: Problem, folder: Path) -> Path:
    """An animation, or in one dimension space-time images, drawn once for every solver and plot."""
    flat = len(problem.axes) == 1
    path = folder / f"{name}.{'png' if flat else 'gif'}"
    key = f"{problem!r} {source_digest('pde', 'plots')} {Path(__file__).read_text()}"
    draw_once(path, key, lambda target: draw_dataset(name, problem, target))
    return path


def draw_dataset(name: str, problem: Problem, path: Path) -> None:
    """Solve and draw."""
    rng = np.random.Generator(np.random.Philox(3))
    steady = problem.geometry.name == "points"
    count = 2 if len(problem.axes) == 1 else 1
    solution = problem.solve([problem.draw(rng) for _ in range(count)])
    if steady:
        save(aerofoils(solution.state, solution.context), path)
        return
    if len(problem.axes) == 1:
        lengths = [axis.length for axis in problem.axes]
        save(gallery(solution.state, fields=problem.fields, times=problem.times, lengths=lengths), path)
        return
    every = max(1, -(-len(problem.times) // FRAMES))
    shown = SHOWN_FIELD.get(name, problem.fields[0])
    if shown == SPIN:
        frames = vorticity_magnitude(solution.state[0, ::every], [axis.length for axis in problem.axes]).max(axis=-1)
    elif shown in problem.context_fields:
        assert solution.context is not None
        frames = solution.context[0, ::every, problem.context_fields.index(shown)]
    else:
        frames = solution.state[0, ::every, problem.fields.index(shown)]
    times = problem.times[::every]
    if problem.geometry.name == "sphere":
        frames = frames - frames.mean(axis=(1, 2), keepdims=True)
        limit = float(np.quantile(np.abs(frames), 0.998))
        titles = [f"{shown}, t = {time / 3600:.0f} h" for time in times]
        animate_globe(frames, path, titles=titles, limit=limit)
        return
    lengths = [axis.length for axis in problem.axes][: frames.ndim - 1]
    animate(
        frames,
        None,
        path,
        times=times.tolist(),
        lengths=lengths,
        labels=Labels(shown.replace("_", " "), tuple(axis.name for axis in problem.axes), title=name),
        options=AnimationOptions(width=480, fps=6.0, format="gif"),
    )


def aerofoils(state: np.ndarray, context: np.ndarray | None) -> Figure:
    """C_p around every case, side by side."""
    from matplotlib.path import Path as Contour
    from matplotlib.tri import Triangulation

    assert context is not None
    with look():
        figure = Figure(figsize=(3.3 * len(state), 2.9))
        for axes, frames, known in zip(figure.subplots(1, len(state)), state, context, strict=True):
            x, y, distance = known[0, :3]
            speed = float(np.hypot(*frames[0, :2, 0]))
            pressure = 2 * frames[-1, 2] / speed**2
            contour = np.stack([x, y], axis=1)[distance <= 0]
            mesh = Triangulation(x, y)
            centres = np.stack([x, y], axis=1)[mesh.triangles].mean(axis=1)
            mesh.set_mask(Contour(contour).contains_points(centres))
            colour_map, low, high = colours(np.clip(pressure, -2, 1))
            image = axes.tripcolor(mesh, pressure, cmap=colour_map, vmin=low, vmax=high, shading="gouraud")
            axes.fill(*contour.T, facecolor="0.6", edgecolor=ink(), linewidth=0.8)
            axes.set(xlim=(-0.5, 1.5), ylim=(-0.8, 0.8), aspect="equal", xticks=[], yticks=[])
            axes.grid(False)
            figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
        figure.suptitle("pressure coefficient C_p")
        return figure


def datasets_index(folder: Path) -> Path:
    """All datasets with a picture and a line each."""
    rows = []
    for name, dataset in DATASETS.items():
        problem = build_problem(name, "small")
        suffix = "png" if len(problem.axes) == 1 else "gif"
        dimensions = {"sphere": "sphere", "points": "points"}.get(problem.geometry.name, f"{len(problem.axes)}D")
        picture = f"[![{alternative_text(name, problem)}]({name}.{suffix}){{ {THUMBNAIL} }}]({name}.md)"
        rows.append((picture, f"[{name}]({name}.md)", dimensions, dataset.summary))
    text = (
        "# Datasets\n\n"
        "Every dataset is made by our own solvers with one command; nothing is downloaded. A page shows its equation, "
        "a trajectory, the options, sizes and times, the commands, and what each model reaches on it.\n\n"
        f"{GENERATED}\n{table(['', 'dataset', 'grid', 'what'], rows, right=4)}"
    )
    return write_page(folder / "index.md", text)
