"""Which damping is learned: distributions over all modes of all scans, from the same runs as the ablation.

The paper compares coefficients: with thousands of them, any difference is significant. Seeds are what is independent,
so the verdict rests on the means of seeds; the paper's test is printed beside it.
"""

from dataclasses import replace

import numpy as np
import torch

from ssno.evaluation.statistics import summarise, welch
from ssno.evaluation.tables import ResultTable
from ssno.layers.modes import Modes
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import MEAN_DAMPING
from ssno.paper.results import Results, below, shown
from ssno.paper.tables_1d import ABLATION, ABLATION_TABLE, STATES, VISCOSITIES
from ssno.paper.trial import KS, Trial
from ssno.plots.summary import outlines
from ssno.runs.load import load_forecaster
from ssno.ssm.initialise import INITIAL_DAMPING

Variant = tuple[int, str, float]
"""States, setting, viscosity: a cell of the ablation."""


def comparisons(at: Experiment) -> dict[str, tuple[Variant, Variant]]:
    """What is compared: first the one that should learn less damping."""
    many, few = max(STATES[at.scale]), min(STATES[at.scale])
    low, high = min(VISCOSITIES[at.scale]), max(VISCOSITIES[at.scale])
    full = (many, "All", low)
    found: dict[str, tuple[Variant, Variant]] = {"full against damping only": (full, (many, "Damping only", low))}
    if high > low:
        found[f"nu = {high:g} against {low:g}"] = ((many, "All", high), full)
    return found | {f"{many} against {few} states": (full, (few, "All", low))}


def in_ablation(variant: Variant) -> tuple[str, str]:
    """Row and column of a variant in the table of the ablation."""
    states, setting, viscosity = variant
    return f"{setting}, {states}", KS[viscosity].title


def in_words(variant: Variant) -> str:
    """A variant in a legend."""
    states, setting, viscosity = variant
    return f"{setting}, {states} states, nu = {viscosity:g}"


class LearnedDamping:
    """Means and distributions of damping, of the ablation's runs."""

    def runs(self, at: Experiment) -> list[Trial]:
        variants = dict.fromkeys(variant for pair in comparisons(at).values() for variant in pair)
        return [
            ABLATION_TABLE.trial(at, *in_ablation(variant), seed) for seed in at.seed_range() for variant in variants
        ]

    def judge(self, at: Experiment, results: Results) -> Finding:
        rows, verdicts, drawn = [], [], {}
        learned = {
            variant: [
                spatial_damping(load_forecaster(results.folder / trial.name).model)
                for trial, _ in results.find(*in_ablation(variant))
            ]
            for pair in comparisons(at).values()
            for variant in pair
        }
        for name, (less, more) in comparisons(at).items():
            if not (learned[less] and learned[more]):
                continue
            per_seed = {variant: [float(values.mean()) for values in learned[variant]] for variant in (less, more)}
            claim = f"{name}: {in_words(more)} learns stronger damping than {in_words(less)}"
            verdicts.append(below(claim, per_seed[less], per_seed[more]))
            pooled = {variant: np.concatenate(learned[variant]) for variant in (less, more)}
            drawn[name] = {in_words(variant): values for variant, values in pooled.items()}
            p = welch(*(summarise(pooled[variant].tolist()) for variant in (less, more)))
            for variant in (less, more):
                mean, printed = summarise(per_seed[variant]), MEAN_DAMPING.get((variant[2], variant[0], variant[1]))
                change = f"{100 * (mean.mean / INITIAL_DAMPING - 1):+.1f} %"
                median = f"{np.median(pooled[variant]):.3g}"
                paper = "" if printed is None else f"{printed:g}"
                rows.append((name, in_words(variant), shown(mean), change, median, paper, f"{p:.1g}"))
        headings = ("comparison", "runs", "mean damping", "change from 0.5", "median", "paper", "p over coefficients")
        return Finding(
            (ResultTable("Learned damping, mean ± standard deviation over seeds", headings, tuple(rows)),),
            tuple(verdicts),
            {"damping": lambda: outlines(drawn, xlabel="damping", start=INITIAL_DAMPING)} if drawn else {},
            tuple(results.records()),
        )


def spatial_damping(model: torch.nn.Module) -> np.ndarray:
    """Damping of all modes outside the temporal memory."""
    found = [
        module.damping().detach().flatten()
        for name, module in model.named_modules()
        if isinstance(module, Modes) and not name.startswith("memory")
    ]
    return torch.cat(found).double().numpy()


DAMPING = replace(
    ABLATION,
    name="damping",
    title="Distributions of learned damping, KS",
    paper_location="Figures of damping distributions",
    published=(
        "Mean damping, from 0.5: full 0.586, damping only 0.726 (nu = 0.075, 64 states); nu = 0.125 0.514; "
        "16 states 0.652."
    ),
    content=LearnedDamping(),
)
