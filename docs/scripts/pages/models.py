"""A page for every model: diagram, what it can do (tried out in code), size, cost, errors, reference."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import torch
from docs.scripts.pages.datasets import by_mean, metric_of
from docs.scripts.pages.diagrams import alternative_text, diagram
from docs.scripts.pages.markdown import GENERATED, over_seeds, page_link, table, write_page
from docs.scripts.pages.stored import comparisons, older_recipe, timings
from torch import nn

from ssno.cli.models import describe, past, size_in
from ssno.data.datasets import DATASETS
from ssno.data.normalise import Normaliser, Normalisers
from ssno.export import ForecastStep
from ssno.forecasting import Forecaster
from ssno.models import OperatorConfig, known_models, model_config

PAPER = "Koren and Lanthaler, Merging Memory and Space: A State Space Neural Operator, TMLR 2026"
MEMNO = "Buitrago Ruiz et al., On the Benefits of Memory for Modeling Time-Dependent PDEs, ICLR 2025, arXiv 2409.02313"
FNO = "Li et al., Fourier Neural Operator for Parametric Partial Differential Equations, ICLR 2021, arXiv 2010.08895"
MAMBA = "Gu and Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023, arXiv 2312.00752"
TRANSOLVER = (
    "Wu et al., Transolver: A Fast Transformer Solver for PDEs on General Geometries, ICML 2024, arXiv 2402.02366"
)
REFERENCES: dict[str, tuple[str, ...]] = {
    "ssno": (PAPER,),
    "ssno-uni": (PAPER,),
    "ssno-vm": (PAPER,),
    "ssno-ff": (PAPER,),
    "ssno-product": ("this project; the network around the blocks is that of " + PAPER,),
    "ssno-warp": (
        "this project; the network around the blocks is that of " + PAPER,
        "displacements as in Flower, 2026, arXiv 2603.04430",
    ),
    "ssno-selective": (PAPER, MAMBA),
    "ssno-sphere": ("this project, after " + PAPER,),
    "ssno-sphere-product": ("this project, after " + PAPER,),
    "ssno-slices": (PAPER, TRANSOLVER),
    "ffno": ("Tran et al., Factorized Fourier Neural Operators, ICLR 2023, arXiv 2111.13802", MEMNO),
    "fno": (FNO, MEMNO),
    "fno-r": (PAPER, FNO),
    "unet": (
        "Ronneberger et al., U-Net, MICCAI 2015, arXiv 1505.04597",
        "Takamoto et al., PDEBench, NeurIPS 2022, arXiv 2210.07182",
    ),
    "cnext-unet": (
        "Ohana et al., The Well, NeurIPS 2024, arXiv 2412.00568",
        "Liu et al., A ConvNet for the 2020s, CVPR 2022, arXiv 2201.03545",
    ),
    "gkt": ("Cao, Choose a Transformer: Fourier or Galerkin, NeurIPS 2021, arXiv 2105.14995",),
    "factformer": (
        "Li et al., Scalable Transformer for PDE Surrogate Modeling (FactFormer), NeurIPS 2023, arXiv 2305.17560",
    ),
    "sfno": ("Bonev et al., Spherical Fourier Neural Operators, ICML 2023, arXiv 2306.03838",),
    "transolver": (TRANSOLVER,),
    "persistence": ("none: the newest frame is the forecast",),
    "linear": ("none: linear extrapolation",),
}
WHEN: dict[str, str] = {
    "ssno": "The default for fields on a grid: periodic data, walls, other resolutions than that of training, "
    "few parameters.",
    "ssno-uni": "An ablation: to measure what backward scans contribute. Not for forecasts.",
    "ssno-vm": "An ablation: to compare axis by axis with one long line through the grid.",
    "ssno-ff": "An ablation: to compare axes in turn with axes in parallel.",
    "ssno-product": "Worth a try where quadratic terms dominate and training is short; ours, and tried on fewer "
    "problems than `ssno`.",
    "ssno-warp": "Flows that carry what they transport: features are read where learned displacements point to. Ours, "
    "not the paper's; no `--mesh`, no selective modes.",
    "ssno-selective": "To study input-dependent modes. States are carried from point to point, which is slow.",
    "ssno-sphere-product": "Fields on the sphere where quadratic terms matter: products of scans along great circles.",
    "ssno-sphere": "Fields on the sphere, if `sfno` is to be compared with a model of scans.",
    "ssno-slices": "Point clouds, to compare scans with attention among slices.",
    "ffno": "The closest baseline; on 1D grids of 256 points and more its mean error is lower after short training.",
    "fno": "The best known baseline. In 2D its parameters grow with the square of the modes.",
    "fno-r": "A small Fourier baseline whose kernels do not mix channels, as those of a scan do not.",
    "unet": "Local, multi-scale fields without periodicity.",
    "cnext-unet": "To compare with The Well's strongest baseline, also with its public weights.",
    "gkt": "Single predictions on fine 1D grids: it stacks frames as channels, and has the lowest latency there.",
    "factformer": "To compare with factorised attention.",
    "sfno": "Fields of a rotating sphere on the equiangular grid: the baseline to be below there.",
    "transolver": "Point clouds: the baseline from which `ssno-slices` differs in one module.",
    "persistence": "Always, beside every score: a model that is not below it has learned nothing useful.",
    "linear": "Beside persistence, for slow and smooth changes.",
}
YES, NO = "yes", "no"
THUMBNAIL = 'width=90 style="min-width: 5rem" loading=lazy'
OTHER_SIZES = (17, 20, 24, 33, 48)


def model_page(name: str, folder: Path) -> Path:
    """Write the page of a model and its diagram."""
    config = largest_default(name)
    (folder / f"{name}.svg").parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_text(diagram(name, config), encoding="utf-8")
    row = describe(name)
    path = folder / f"{name}.md"
    parts = [
        f"# {name}\n\n{row['summary']}\n",
        GENERATED,
        f"![{alternative_text(name, config)}]({name}.svg)\n",
        f"**When to choose it.** {WHEN[name]} {record(name)}\n",
        f"```bash\n{train_command(name)}\n```\n",
        f"## What it can do\n\nTried out in code with the smallest size when this page was made.\n\n"
        f"{table(['ability', 'tried'], capabilities(name).items(), right=2)}",
        f"## Size\n\n{sizes(name)}",
        f"## Cost\n\n{costs(name)}",
        f"## Errors\n\n{errors(name)}",
        "## Reference\n\n" + "\n".join(f"- {text}" for text in REFERENCES[name]) + "\n",
        f"Differences from the original code: {page_link('models', 'models.md', near=path)}.\n",
    ]
    return write_page(path, "\n".join(parts))


def largest_default(name: str) -> OperatorConfig:
    """The usual size in two dimensions where there is one, since that shows axes."""
    try:
        return model_config(name, n_dims=2)
    except ValueError:
        return model_config(name)


def train_command(name: str) -> str:
    """A command that trains this model on a dataset it takes."""
    kinds = model_config(name).geometries
    data = "kt-foil" if kinds == ("points",) else "swe" if kinds == ("sphere",) else "ks"
    data = "torus-li" if name == "ssno-warp" else data
    if name in ("persistence", "linear"):
        return "ssno evaluate ks-0.1-64    # prints trivial forecasts beside the model"
    return f"ssno train {data} --data.preset small --model {name}"


@cache
def capabilities(name: str) -> dict[str, str]:
    """What a model takes and can do, each tried with its smallest size."""
    config = model_config(f"{name}:tiny")
    grids = config.geometries
    return {
        "Cartesian grids": ", ".join(f"{n}D" for n in (1, 2, 3) if _builds(name, n_dims=n))
        if "cartesian" in grids
        else NO,
        "sphere": "made for it" if grids == ("sphere",) else "as a rectangle" if "sphere" in grids else NO,
        "point clouds": YES if "points" in grids else NO,
        "the past": {"none": "one frame"}.get(past(model_config(name)), past(model_config(name))),
        "other grids, same weights": _other_grids(name),
        "commutes with shifts (periodic)": _shifts(name),
        "boundaries of its own, per axis": _boundaries(name),
        "streaming (`start`, `step`)": YES if hasattr(config.build(), "step") else NO,
        "export (ONNX, `torch.export`, AOTI)": _export(name),
    }


def _tiny(name: str, **fields: Any) -> nn.Module:
    torch.manual_seed(0)
    return model_config(f"{name}:tiny", **fields).build_described().eval()


def _builds(name: str, **fields: Any) -> bool:
    """Whether the smallest size can be built and run with these fields."""
    try:
        config = model_config(f"{name}:tiny", **fields)
        return _runs(config.build_described().eval(), config, _grid(config))
    except (ValueError, TypeError):
        return False


def _runs(model: nn.Module, config: OperatorConfig, grid: Sequence[int]) -> bool:
    try:
        with torch.no_grad():
            model(_frames(config, grid))
    except ValueError:
        return False
    return True


def _grid(config: OperatorConfig) -> tuple[int, ...]:
    return (16, 32) if config.geometries == ("sphere",) else (16,) * config.n_dims


def _frames(config: OperatorConfig, grid: Sequence[int]) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(1, max(2, config.frames_seen()), config.in_channels, *grid)


def _other_grids(name: str) -> str:
    config, model = model_config(f"{name}:tiny"), _tiny(name)
    if config.geometries == ("sphere",):
        return YES if _runs(model, config, (24, 48)) else "built for one grid"
    refused = [points for points in OTHER_SIZES if not _runs(model, config, (points,))]
    if not refused:
        return "any number of points"
    return "multiples of 16" if refused == [n for n in OTHER_SIZES if n % 16] else f"not {refused}"


def _shifts(name: str) -> str:
    """Whether a shifted input gives the shifted prediction, in 2D, to rounding."""
    if "cartesian" not in model_config(name).geometries:
        return "-"
    usual: Any = model_config(f"{name}:tiny", n_dims=2).recommended(periodic=True)
    if _commutes(usual):
        return YES
    bare = replace(usual, coordinates=False) if hasattr(usual, "coordinates") else usual
    return "without coordinates" if _commutes(bare) else NO


def _commutes(config: OperatorConfig) -> bool:
    torch.manual_seed(0)
    model = config.build_described().eval().double()
    frames = _frames(config, (16, 16)).double()
    with torch.no_grad():
        moved, still = model(frames.roll((3, 5), (-2, -1))), model(frames).roll((3, 5), (-2, -1))
    return torch.allclose(moved, still, atol=1e-9)


def _boundaries(name: str) -> str:
    config = model_config(name)
    if not hasattr(config, "boundary"):
        return NO
    hints = get_type_hints(type(config))["boundary"]
    kinds = next(get_args(choice) for choice in get_args(hints) if isinstance(get_args(choice)[0], str))
    return ", ".join(kind for kind in kinds if _builds(name, boundary=kind))


def _export(name: str) -> str:
    model = _tiny(name)
    config: Any = model.config
    fields = tuple(f"u{n}" for n in range(config.out_channels))
    known = Normaliser("zscore", fields, *[tuple(1.0 for _ in fields)] * 3)
    context = Normaliser.identity(tuple(f"c{n}" for n in range(config.in_channels - config.out_channels)))
    try:
        forecaster = Forecaster(model, normalisers=Normalisers(known, context), predict_increment=name != "linear")
        ForecastStep(forecaster, grid=_grid(config), spacing=None)
    except ValueError:
        return NO
    return YES


def sizes(name: str) -> str:
    """Parameters at the usual and at the smallest size."""
    counts = {f"{n}D": size_in(name, n) for n in (1, 2, 3)}
    if name == "fno":
        counts["2D, 8 modes per axis"] = _count(name, n_dims=2, n_modes=8)
    rows = [(where, f"{count:,}") for where, count in counts.items() if count is not None]
    rows.append(("`:tiny`", f"{sum(p.numel() for p in _tiny(name).parameters()):,}"))
    fields = model_config(name)
    what = f"{fields.in_channels} input and {fields.out_channels} predicted field(s), default options"
    return f"Parameters for {what}:\n\n{table(['', 'parameters'], rows)}"


def _count(name: str, **fields: Any) -> int:
    from ssno.models.operator import parameters_of

    return parameters_of(model_config(name, **fields))


def costs(name: str) -> str:
    """Stored times of predictions and training steps."""
    tasks = {"forward": "one prediction", "rollout": "22 frames in a row", "train": "one training step"}
    mine = [row for row in timings() if row.model == name and row.batch == 1]
    if not mine:
        return "No stored benchmark has this model; `ssno bench` measures it.\n"
    order = list(tasks)
    mine = sorted(mine, key=lambda row: (order.index(row.task), len(row.grid), row.grid))
    rows = [
        (tasks[row.task], row.grid, f"{row.ms:.3g}", f"{row.gflop:.3g}", f"`results/{row.file}`")
        for row in mine
        if row.grid in ("64", "512", "64x64")
    ]
    note = "Medians on two CPU cores, batch 1; rows of `cost.csv` are older than those of `reproduce`.\n"
    return f"{table(['task', 'grid', 'ms', 'GFLOP', 'stored in'], rows, right=2)}\n{note}"


def standings(name: str) -> list[tuple[Any, Any, bool]]:
    """Cells of this model in stored comparisons, each with the best of another model, and whether it is the lowest."""
    found = []
    for dataset in DATASETS:
        metric = metric_of(dataset)
        for column in comparisons(dataset).values():
            mine = [cell for cell in column if cell.model == name]
            others = [cell for cell in column if cell.model != name]
            if mine and others:
                best, rival = (min(group, key=lambda cell: by_mean(cell, metric)) for group in (mine, others))
                found.append((best, rival, by_mean(best, metric) < by_mean(rival, metric)))
    return found


def record(name: str) -> str:
    """How often the model has the lowest mean error, in a sentence."""
    found = standings(name)
    if not found:
        return "No stored comparison has this model."
    wins = sum(lowest for *_, lowest in found)
    return f"It has the lowest mean error in {wins} of {len(found)} stored comparisons (below)."


def errors(name: str) -> str:
    """Errors on all datasets beside the best other model and persistence."""
    rows = []
    for cell, rival, _ in standings(name):
        metric = metric_of(cell.dataset)
        trivial = cell.persistence.get(metric)
        rows.append(
            (
                f"[{cell.dataset}](../datasets/{cell.dataset}.md)",
                cell.case,
                f"`{cell.scale}`",
                over_seeds(cell.summary(metric)),
                f"{over_seeds(rival.summary(metric))} {rival.model}",
                "-" if trivial is None else f"{trivial:.3g}",
                f"`{cell.file}`",
            )
        )
    if not rows:
        return "No stored result compares this model with another one yet.\n"
    headings = ["dataset", "case", "scale", "error", "best other model", "persistence", "file below results/"]
    note = (
        "`rel_l2` of rollouts (on the sphere in normalised units), mean ± standard deviation over (number of) seeds. "
        "Where an experiment has several settings of the model, the best one.\n"
    )
    old = older_recipe(cell.file for cell, *_ in standings(name))
    return f"{note}\n{old}\n{table(headings, rows, right=3)}"


def models_index(folder: Path) -> Path:
    """All models: diagram, size, abilities, and a line."""
    rows = []
    for name in known_models():
        row, able = describe(name), capabilities(name)
        small = f"[![diagram of {name}]({name}.svg){{ {THUMBNAIL} }}]({name}.md)"
        counts = " / ".join("-" if row[f"parameters_{n}d"] is None else f"{row[f'parameters_{n}d']:,}" for n in (1, 2))
        grids = able["Cartesian grids"] if "cartesian" in row["grids"] else ", ".join(row["grids"])
        rows.append((small, f"[{name}]({name}.md)", grids, counts, row["past"], row["summary"]))
    text = (
        "# Models\n\n"
        "Every model of the registry trains, streams and saves the same way. A page shows its diagram, what it can and "
        "cannot do, its size, its cost, and its errors on all datasets beside those of the others. Undecided? "
        "[Which model, which options](../which.md).\n\n"
        f"{GENERATED}\n"
        f"{table(['', 'model', 'grids', 'parameters 1D / 2D', 'past', 'what it is'], rows, right=6)}"
    )
    return write_page(folder / "index.md", text)
