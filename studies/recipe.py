"""How our own recipe came about: one change after the other, each run with the same wall time, then what did not help.

Not a published result: the paper's recipe is the first line. Every run sees as many trajectories as fit into the time
that our recipe takes for 2048 on one thread, measured beforehand; seconds are in the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ssno.layers.axial import BlockOptions
from ssno.layers.modes import ModeOptions
from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment
from ssno.paper.results import Results
from ssno.paper.table import METRICS, Claim, Table, TableRow, columns_of
from ssno.paper.trial import BURGERS, CPU, KS, TINY, Trial, trial
from ssno.plots.style import Figure, look, palette
from ssno.plots.summary import filled, plain_numbers
from ssno.runs.options import Recipe, Unrolling


def seed_rows(groups: Mapping[str, Mapping[str, Sequence[float]]], *, xlabel: str) -> Figure:
    """`seed_dots` turned, for long names: one row per name, panels side by side; a panel may lack some rows."""
    groups = filled(groups)
    with look():
        names = list(dict.fromkeys(name for rows in groups.values() for name in rows))
        figure = Figure(figsize=(3.6 + 2.6 * len(groups), 0.9 + 0.27 * len(names)))
        panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
        for panel, (group, rows) in zip(panels, groups.items(), strict=True):
            for place, name in enumerate(names):
                known = [value for value in rows.get(name, ()) if np.isfinite(value)]
                if known:
                    panel.plot(known, [place] * len(known), "o", color=palette()[0], markersize=5)
                    panel.plot([np.mean(known)], [place], "|", color=palette()[1], markersize=14, markeredgewidth=2)
            panel.set(title=group, xscale="log", xlabel=xlabel)
            plain_numbers(panel.xaxis)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].invert_yaxis()
        return figure


@dataclass(frozen=True)
class Variant:
    """One line of the table: model settings, training options, and how many trajectories fit into the time."""

    label: str
    model: SSNOConfig
    trajectories: int
    options: dict[str, Any] = field(default_factory=dict)
    epochs: int = 1
    recipe: Recipe = "fast"
    checked: bool = False
    """Whether it is also run on Burgers."""
    seeds: int = 1
    """At scale `cpu`, unless all are asked to have more."""


PLAIN = SSNOConfig()
ROUND = SSNOConfig(boundary="periodic", coordinates=False)
OURS = PLAIN.recommended(periodic=True)
PUBLISHED, FAST, SOAP = "paper", "... frequencies and steps of the grid", "fast: ... SOAP"
WHOLE = 2048
"""Trajectories that our recipe sees, once each; others as many as take as long."""


def variants() -> list[Variant]:
    """First the way to our recipe, then steps aside from it. All are named after what they change."""
    adamw, high = {"optimizer": "adamw", "learning_rate": 3e-3}, {"optimizer": "adamw", "learning_rate": 1e-2}
    large = {**adamw, "batch_size": 16}
    lin = ModeOptions(initialisation="lin", dt_min=0.01, dt_max=0.05)
    shorter = replace(OURS.modes, dt_min=0.1, dt_max=1.0)
    local = replace(OURS.modes, dt_min=1.0, dt_max=3.0)

    def aside(label: str, model: SSNOConfig, trajectories: int = WHOLE, epochs: int = 1, **options: Any) -> Variant:
        return Variant(f"1e-2, {label}", model, trajectories, {**high, **options}, epochs)

    return [
        Variant(PUBLISHED, PLAIN, 1430, {}, 2, "paper", checked=True, seeds=3),
        Variant("z-score, increments, one cycle to 3e-3, batch 16", PLAIN, 1250, large, 2, checked=True),
        Variant("... batch 4", PLAIN, WHOLE, adamw),
        Variant("... periodic scans, no coordinates", ROUND, WHOLE, adamw, checked=True),
        Variant(FAST, OURS, WHOLE, adamw, checked=True, seeds=3),
        Variant("... one cycle to 1e-2", OURS, WHOLE, high, checked=True),
        Variant(SOAP, OURS, WHOLE, checked=True, seeds=3),
        replace(aside("steps 1 to 3", replace(OURS, modes=local)), checked=True),
        aside("steps 0.1 to 1", replace(OURS, modes=shorter)),
        aside("frequencies pi n, steps 0.01 to 0.05", replace(ROUND, modes=lin)),
        aside("batch 8", OURS, 1165, 2, batch_size=8),
        aside("no noise", OURS, noise_std=0.0),
        aside("noise 1e-2", OURS, noise_std=1e-2),
        aside("averaged weights (EMA 0.99)", OURS, ema=0.99),
        aside("dynamics at 1e-3", OURS, ssm_learning_rate=1e-3),
        aside("frames instead of increments", OURS, predict_increment=False),
        aside("residual in each path", replace(OURS, block=BlockOptions(residual="path"))),
        aside("pushforward in the second half", OURS, 810, 2, unroll=Unrolling(pushforward=(0, 1))),
        aside("second half unrolled", OURS, 715, 2, unroll=Unrolling(teacher_forcing=(1.0, 0.0))),
    ]


VARIANTS = {variant.label: variant for variant in variants()}
AT_TINY = (PUBLISHED, FAST, SOAP, *list(VARIANTS)[9::4])
COLUMNS = columns_of(KS[0.1], BURGERS)


def in_study(at: Experiment, label: str, case: str, seed: int) -> bool:
    """Some variants are also checked on Burgers; at scale `cpu` most have one seed, unless all are asked for more."""
    variant = VARIANTS[label]
    if at.scale == "tiny":
        return label in AT_TINY and case == "KS 0.1"
    every_seed = at.scale != "cpu" or at.seeds is not None
    return (every_seed or seed < variant.seeds) and (variant.checked or case == "KS 0.1")


def run_of(at: Experiment, label: str, case: str, seed: int) -> Trial:
    """One run. There is no published setting: scale `paper` is `cpu` with five seeds."""
    variant, tiny = VARIANTS[label], at.scale == "tiny"
    smallest: dict[str, Any] = {"hidden_channels": 16, "n_layers": 2, "d_state": 8, "head_channels": 32}
    model = replace(variant.model, **smallest) if tiny else variant.model
    count = None if tiny else variant.trajectories
    budget = replace(TINY if tiny else CPU, recipe=variant.recipe, train=count, epochs=variant.epochs)
    points = 32 if tiny else 64
    return trial(label, COLUMNS[case].problem, model, points=points, seed=seed, budget=budget, **variant.options)


def row_figure(at: Experiment, results: Results) -> Mapping[str, Any]:
    """Every seed of every variant, one line each."""
    drawn = {case: results.there({label: (label, case) for label in VARIANTS}) for case in COLUMNS}
    return {"recipe": lambda: seed_rows(drawn, xlabel="rel_l2 of rollouts")}


RECIPE = Experiment(
    name="recipe",
    title="From the paper's recipe to ours, equal wall time",
    paper_location="Nowhere: our own study",
    published="Nothing; its recipe is AdamW, cosine from 1e-3, 500 epochs, [0, 1] units, noise 1e-3.",
    cpu=CPU,
    cpu_seeds=3,
    compare_recipes=False,
    content=Table(
        rows=dict.fromkeys(VARIANTS, TableRow()),
        columns=COLUMNS,
        cell=run_of,
        chosen=in_study,
        metrics={
            "rel_l2": METRICS["rel_l2"],
            "rel_l2_onestep": METRICS["rel_l2_onestep"],
            "spectral_error/high": "rollouts, highest third of wavenumbers",
        },
        claims=tuple(
            Claim(f"{case}: our recipe at least 2 times below the paper's", (SOAP, case), (PUBLISHED, case), factor=2.0)
            for case in COLUMNS
        ),
        figures=(row_figure,),
    ),
)
